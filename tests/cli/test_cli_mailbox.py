"""`windlass mailbox` and `windlass agents`: the files of agents, seen and fed without a server."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import windlass
from windlass.testing.server_process import ServerProcess

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The program, with a data directory of the test's own."""

    def program(*arguments: str, stdin: str = "", code: int = 0) -> "subprocess.CompletedProcess[str]":
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(windlass.__file__).parent.parent)}
        command = ["windlass", *arguments, "--data-dir", str(tmp_path / "data"), "-C", str(tmp_path)]
        assert ServerProcess.stem is not None
        result = ServerProcess.stem.run(command, environment, stdin)
        assert result.returncode == code, result.stderr
        return result

    return program


def test_a_message_goes_from_send_over_claim_to_ack(run: Run) -> None:
    """B71: a script is a reader and a writer like any other."""
    mail_id = run("mailbox", "send", "reviewer", "look at parser.py", "--from", "me", "--role", "user").stdout.strip()
    (waiting,) = json.loads(run("mailbox", "show", "reviewer", "--json").stdout)
    assert (waiting["state"], waiting["mail"]["body"]) == ("waiting", "look at parser.py")
    claim = json.loads(run("mailbox", "claim", "reviewer").stdout)
    assert claim["mail"]["id"] == mail_id and claim["mail"]["from"] == {"session_id": "me", "role": "user"}
    run("mailbox", "claim", "reviewer", code=1)
    run("mailbox", "ack", "reviewer", claim["token"])
    assert json.loads(run("mailbox", "show", "reviewer", "--json").stdout) == []


def test_a_script_that_sends_again_sends_once(run: Run) -> None:
    """A script that was killed cannot know whether its message arrived; with an id of its own it need not."""
    for _ in range(2):
        run("mailbox", "send", "reviewer", "hello", "--from", "me", "--id", "release-1")
    assert json.loads(run("mailbox", "--json").stdout)[0]["waiting"] == 1


def test_a_body_can_be_json_and_come_from_standard_input(run: Run) -> None:
    """What agents send each other is seldom one line."""
    run("mailbox", "send", "reviewer", "-", "--from", "me", "--as-json", stdin='{"files": ["a", "b"]}')
    assert json.loads(run("mailbox", "show", "reviewer", "--json").stdout)[0]["mail"]["body"] == {"files": ["a", "b"]}
    assert "no JSON" in run("mailbox", "send", "x", "{", "--from", "me", "--as-json", code=1).stderr


def test_a_message_given_back_is_there_again(run: Run) -> None:
    """A person who claimed by mistake must be able to put it back."""
    run("mailbox", "send", "reviewer", "hello", "--from", "me")
    run("mailbox", "release", "reviewer", json.loads(run("mailbox", "claim", "reviewer").stdout)["token"])
    run("mailbox", "claim", "reviewer")
    run("mailbox", "release", "reviewer", "--all")
    assert json.loads(run("mailbox", "claim", "reviewer").stdout)["attempt"] == 3
    run("mailbox", "release", "reviewer", code=2)


def test_what_was_set_aside_is_listed_with_its_reason_and_can_be_deleted(run: Run, tmp_path: Path) -> None:
    """B71: else nobody would ever learn why a message did not arrive."""
    run("mailbox", "send", "reviewer", "hello", "--from", "me")
    (new,) = (tmp_path / "data").rglob("mailboxes/reviewer/new")
    (new / "stranger").write_text("hello")
    run("mailbox", "claim", "reviewer", "--limit", "5")
    (aside,) = json.loads(run("mailbox", "corrupt", "reviewer", "--json").stdout)
    assert "no name that a delivery gives" in aside["reason"]
    assert aside["name"] in run("mailbox", "corrupt", "reviewer").stdout
    assert json.loads(run("mailbox", "corrupt", "reviewer", "--discard", aside["name"], "--json").stdout) == []


def test_what_strangers_wrote_cannot_move_the_cursor(run: Run) -> None:
    """A26 A41: a message is written by a model, and shown on a person's terminal."""
    run("mailbox", "send", "reviewer", "\x1b[2Jgone\u202e", "--from", "me\x1b[1m", "--role", "a\nb")
    run("agents", "save", "reviewer", "--type", "a\x1bb", "--status", "idle", "--title", "x\x1b[2Jy")
    shown = run("mailbox", "show", "reviewer").stdout + run("agents").stdout + run("agents", "show", "reviewer").stdout
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "<U+001B>[2Jgone<U+202E>" in shown and "a\\nb" in shown


def test_refusals_are_one_line_that_says_what_to_do(run: Run) -> None:
    """A traceback helps nobody."""
    for arguments in (["mailbox", "send", "../x", "hi", "--from", "me"], ["agents", "show", "nobody"]):
        result = run(*arguments, code=1)
        assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert "no longer claimed by you" in run("mailbox", "ack", "reviewer", "0-nonsense", code=1).stderr


def test_agents_are_listed_below_their_parents(run: Run) -> None:
    """B70: who belongs to whom is the first question."""
    run("agents", "save", "top", "--type", "agent", "--status", "running", "--title", "The boss")
    run("agents", "save", "kid", "--type", "agent", "--status", "idle", "--parent", "top")
    run("agents", "save", "orphan", "--type", "agent", "--status", "error", "--parent", "ses_1")
    ids = [line.split("  ")[0] or line.strip().split("  ")[0] for line in run("agents").stdout.splitlines()[1:]]
    assert ids == ["ses_1", "orphan", "top", "kid"]
    listed = json.loads(run("agents", "--json").stdout)
    assert [(agent["id"], agent["parent"]) for agent in listed] == [
        ("ses_1", ""), ("orphan", "ses_1"), ("top", ""), ("kid", "top")
    ]  # fmt: skip


def test_a_payload_is_kept_and_shown(run: Run) -> None:
    """B70: it is all that an agent needs to go on."""
    payload = '{"steps": [1, 2]}'
    run("agents", "save", "top", "--type", "agent", "--status", "idle", "--payload", "-", stdin=payload)
    assert json.loads(run("agents", "show", "top", "--json").stdout)["payload"] == {"steps": [1, 2]}
    assert (
        "no session"
        in run("agents", "save", "top", "--type", "a", "--status", "idle", "--payload", "-", stdin="{", code=1).stderr
    )


def test_rebuild_says_what_it_mended_and_what_it_cannot(run: Run, tmp_path: Path) -> None:
    """I24: who asks for it suspects something, and wants to know."""
    run("agents", "save", "kid", "--type", "agent", "--status", "idle", "--parent", "top")
    (index,) = (tmp_path / "data").rglob("index.json")
    index.write_text("{}")
    assert "mended index.json" in run("agents", "rebuild").stdout
    (session,) = (tmp_path / "data").rglob("session.json")
    session.write_text("{}")
    assert "is left out" in run("agents", "rebuild", code=1).stdout
