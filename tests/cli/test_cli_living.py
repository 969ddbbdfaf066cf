"""Commands against a real server with a past: queue, export, search, timeline, pair, completion; and none of them
prints an escape code where nobody wants one."""

import asyncio
import json
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from command_line import environment, on_files, on_terminal
from living_server import LivingServer

from windlass.cli.exported import SessionExport
from windlass.cli.main import COMMANDS, windlass
from windlass.cli.pair import how_to_be_reached, is_loopback


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivingServer]:
    server = LivingServer(tmp_path_factory.mktemp("living"))
    asyncio.run(server.start())
    yield server
    asyncio.run(server.server.stop())


def ask(living: LivingServer, *arguments: str) -> str:
    """What a command prints on standard output; it must succeed."""
    ended = on_files(living.home, *arguments, *living.at())
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


# -- queue --


def test_what_waits_is_listed_removed_and_cleared(living: LivingServer) -> None:
    """B09: a prompt that somebody regrets has to be stopped before it starts, without stopping what runs."""
    session = living.queue_up()
    rows = ask(living, "queue").splitlines()
    assert [row.split()[0] for row in rows[1:]] == [living.runs["first in line"], living.runs["second in line"]]
    assert ask(living, "queue", session[:12]) == "\n".join(rows) + "\n"
    ended = on_files(living.home, "queue", "remove", living.runs["hold fast"], *living.at())
    assert ended.returncode == 1  # it runs: that is for `cancel`
    ask(living, "queue", "remove", living.runs["first in line"])
    assert json.loads(ask(living, "queue", session, "--json"))[0]["id"] == living.runs["second in line"]
    ask(living, "queue", "clear", session)
    assert json.loads(ask(living, "queue", "--json")) == []
    assert living.state(living.runs["hold fast"]) == "running"
    ask(living, "cancel", session)


# -- export, search, timeline --


def test_an_export_as_json_is_complete_and_can_be_read_again(living: LivingServer) -> None:
    """What is taken out for keeping would be found useless when it is needed."""
    text = ask(living, "sessions", "export", living.sessions["Knots"], "--format", "json")
    export = msgspec.json.decode(text, type=SessionExport)
    shown = json.loads(ask(living, "sessions", "show", living.sessions["Knots"], "--json"))
    assert (export.version, export.session.title) == (1, "Knots")
    assert [message.id for message in export.messages] == [message["id"] for message in shown]
    assert [run.state for run in export.runs] == ["completed"]
    assert {file.origin for file in export.files} == {"before", "after"}


def test_an_export_as_markdown_has_prompts_answers_tools_diffs_and_costs(living: LivingServer) -> None:
    """It is for people who were not there."""
    text = ask(living, "sessions", "export", living.sessions["Knots"])
    assert text.startswith("# Knots\n") and "## Prompt (" in text and "The windlass holds." in text
    assert "<details><summary>write: knot.txt</summary>" in text and "+one" in text and "````diff" in text
    assert "<details><summary>Thinking</summary>" in text and "tokens in" in text and "completed, took" in text
    # The fence that the model left open is closed: else everything after it would be code.
    assert "I write it.\n\n```\n```\n" in text


def test_sub_agents_are_exported_when_asked_for(living: LivingServer) -> None:
    """Half of what was done is theirs."""
    plain = ask(living, "sessions", "export", living.sessions["Crew"])
    whole = ask(living, "sessions", "export", living.sessions["Crew"], "--agents")
    assert "## Sub-agent (explore)" not in plain and "## Sub-agent (explore)" in whole
    assert "There is a rope in the locker." in whole


def test_an_export_into_a_file_is_whole_and_private(living: LivingServer, tmp_path: Path) -> None:
    """A13: conversations hold what people would not show around."""
    file = tmp_path / "knots.json"
    file.write_text("old")
    ask(living, "sessions", "export", living.sessions["Knots"], "-o", str(file))
    assert msgspec.json.decode(file.read_bytes(), type=SessionExport).session.title == "Knots"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(list(tmp_path.iterdir())) == 1


def test_an_export_that_cannot_be_written_says_so(living: LivingServer) -> None:
    """Somebody would delete the session and find that there is no file."""
    target = living.home / "nowhere" / "x.md"
    ended = on_files(living.home, "sessions", "export", living.sessions["Knots"], "-o", str(target), *living.at())
    assert ended.returncode == 1 and "cannot be written" in ended.stderr


def test_a_search_says_where_something_was_said(living: LivingServer) -> None:
    """Nobody reads twenty sessions for one sentence."""
    text = ask(living, "sessions", "search", "windlass holds")
    assert living.sessions["Knots"] in text and "The windlass holds." in text
    (hit,) = json.loads(ask(living, "sessions", "search", "windlass holds", "--json"))
    assert hit["session_id"] == living.sessions["Knots"]
    assert "  title: Knots\n" in ask(living, "sessions", "search", "Knots")


def test_a_timeline_is_drawn(living: LivingServer) -> None:
    """B: what a run waited for cannot be seen from how long it took."""
    lines = ask(living, "runs", "timeline", living.runs["write a file"]).splitlines()
    assert lines[0].startswith(living.runs["write a file"])
    assert [line.split()[0] for line in lines[1:] if line.split()[0] != "waits"] == ["model", "tool", "model"]


def test_runs_and_sessions_show_the_same_clock(living: LivingServer) -> None:
    """One of them said UTC, so that a run seemed to be hours before its session."""
    options = [*living.at(), "--data-dir", str(living.data_dir)]
    run = on_files(living.home, "runs", *options, TZ="Asia/Kathmandu").stdout.splitlines()[1].split()
    session = on_files(living.home, "sessions", *options, TZ="Asia/Kathmandu").stdout.splitlines()[-1].split()
    assert abs(_minutes(run[3]) - _minutes(session[2])) < 30


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")[:2]
    return int(hours) * 60 + int(minutes)


# -- pair --


def test_on_loopback_only_pair_says_exactly_what_to_do(living: LivingServer) -> None:
    """People would hold a phone in front of a code that cannot work."""
    ended = on_files(living.home, "pair", "--data-dir", str(living.data_dir))
    assert ended.returncode == 0 and re.fullmatch(r"http://127\.0\.0\.1:\d+/\?ticket=\S+\n", ended.stdout)
    assert re.search(r"windlass serve --listen 0\.0\.0\.0:\d+ --allow-host \S+ .*--tls-cert", ended.stderr)
    assert "plain HTTP" in ended.stderr and "works once" in ended.stderr and "windlass token revoke" in ended.stderr


def test_a_link_lets_one_browser_in_with_the_scope_that_was_asked_for(living: LivingServer) -> None:
    """A10 A11: a link for looking that lets its finder prompt would be a way round every scope."""
    options = ["--data-dir", str(living.data_dir)]
    link = json.loads(on_files(living.home, "pair", "--read-only", "--json", *options).stdout)
    assert link["scope"] == "read" and not link["reachable"]
    assert _opened(link["url"]) in (200, 302, 303) and _opened(link["url"]) == 401
    listed = json.loads(on_files(living.home, "token", "list", "--json", *options).stdout)
    assert [token["scope"] for token in listed if token["name"].startswith("browser-")] == ["read"]


def _opened(link: str) -> int:
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    parts = urlsplit(link)
    connection = HTTPConnection(parts.netloc, timeout=20)
    connection.request("GET", f"{parts.path}?{parts.query}", headers={"Accept": "text/html"})
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_advice_names_this_machine() -> None:
    """A command with placeholders is copied with its placeholders."""
    lines = how_to_be_reached(["http://127.0.0.1:5000/?ticket=x"], "ship", "192.168.1.5")
    command = "  windlass serve --listen 0.0.0.0:5000 --allow-host ship --allow-host 192.168.1.5 --tls-cert cert.pem"
    assert lines[2].startswith(command)


@pytest.mark.parametrize(
    ("link", "loopback"),
    [
        ("http://127.0.0.1:1/", True),
        ("http://[::1]:1/", True),
        ("http://localhost/", True),
        ("http://ship.localhost./", True),
        ("http://192.168.1.5/", False),
        ("https://ship.local/", False),
    ],
)
def test_a_link_for_this_machine_only_is_known(link: str, loopback: bool) -> None:
    """A code with it would be useless on a phone."""
    assert is_loopback(link) is loopback


async def test_a_server_on_the_network_is_shown_as_a_code(tmp_path: Path) -> None:
    """The one thing the command is for; and the warning that goes with plain HTTP."""
    from windlass.testing.server_process import ServerProcess

    async with ServerProcess(tmp_path, "--allow-host", "ship.example", listen="0.0.0.0:0") as server:
        options = ["--data-dir", str(server.data_dir)]
        plain = on_files(tmp_path, "pair", *options)
        _, coloured = on_terminal(tmp_path, "pair", *options)
        _, ascii = on_terminal(tmp_path, "pair", "--ascii", *options)
    assert "http://ship.example:" in plain.stdout and "▀" in plain.stdout and "\x1b" not in plain.stdout
    assert "plain HTTP" in plain.stderr and "On this machine: http://127.0.0.1:" in plain.stdout
    assert "\x1b[30m\x1b[107m" in coloured  # black on white, whatever the terminal's own colours are
    assert "##" in ascii and "▀" not in ascii


# -- completion --


def complete(living: LivingServer, line: str, *, directory: Path | None = None) -> list[str]:
    """What real bash offers for the last word of a line, through the script it was given."""
    bin_directory = living.home / "bin"
    bin_directory.mkdir(exist_ok=True)
    program = bin_directory / "windlass"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m windlass "$@"\n')
    program.chmod(0o755)
    words = line.split(" ")
    script = f"""
        source <(windlass completion bash)
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
        _windlass_completion windlass
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    variables = environment(living.home, XDG_DATA_HOME=str(living.home / "share"))
    variables["PATH"] = f"{bin_directory}:{variables['PATH']}"
    ended = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=variables,
        cwd=directory or living.project,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ended.stdout.split()


def test_bash_completes_commands_without_loading_them(living: LivingServer) -> None:
    """A key that takes a second is not pressed twice."""
    assert complete(living, "windlass se") == ["serve", "sessions"]
    assert complete(living, "windlass sessions ex") == ["export"]


def test_bash_completes_ids_of_the_directory(living: LivingServer) -> None:
    """Nobody types 32 hexadecimal digits."""
    begun = living.sessions["Knots"][:10]
    line = f"windlass sessions show --data-dir {living.data_dir} {begun}"
    assert complete(living, line, directory=living.home) == []  # not open there; and completing opens nothing
    holder = living.hold_open()
    try:
        found = complete_until(living, line)
    finally:
        holder()
    assert found == [living.sessions["Knots"]]


def complete_until(living: LivingServer, line: str) -> list[str]:
    """Asked again while the machine is too busy for an answer in the time that a key may take."""
    for _ in range(10):
        if found := complete(living, line):
            return found
    return []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(shell: str, tmp_path: Path) -> None:
    """A script with a mistake in it breaks every new terminal of whoever installed it."""
    script = on_files(tmp_path, "completion", shell).stdout
    assert "_WINDLASS_COMPLETE" in script and "windlass" in script
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: its script was not run")
    subprocess.run([shell, "-n", "-c", script], check=True, timeout=20)


# -- escape codes --


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name)


# What each command is called with; one that is not here fails the test below. `{Title}` is that session.
CALLS: dict[tuple[str, ...], list[str]] = {
    ("serve",): ["--tls-cert", "x"],
    ("run",): ["@", "hello"],
    ("attach",): ["--help"],
    ("sessions", "list"): ["@"],
    ("sessions", "show"): ["@", "{Knots}"],
    ("sessions", "export"): ["@", "{Knots}"],
    ("sessions", "search"): ["@", "rope"],
    ("sessions", "rename"): ["@", "{Crew}", "The crew"],
    ("sessions", "delete"): ["@", "ses_none"],
    ("sessions", "undo"): ["@", "{Crew}"],
    ("sessions", "plan"): ["@", "{Crew}", "off"],
    ("sessions", "summarize"): ["@", "{Crew}"],
    ("runs", "list"): ["@"],
    ("runs", "show"): ["@", "{write a file}"],
    ("runs", "timeline"): ["@", "{write a file}"],
    ("queue", "list"): ["@"],
    ("queue", "remove"): ["@", "run_none"],
    ("queue", "clear"): ["@", "{Crew}"],
    ("cancel",): ["@", "{Crew}"],
    ("permissions", "list"): ["@"],
    ("permissions", "allow"): ["@", "perm_none"],
    ("permissions", "deny"): ["@", "perm_none"],
    ("questions", "list"): ["@"],
    ("questions", "answer"): ["@", "que_none", "x"],
    ("questions", "cancel"): ["@", "que_none"],
    ("agents", "list"): ["@"],
    ("agents", "show"): ["@", "none"],
    ("agents", "save"): ["@", "bosun", "--kind", "agent", "--status", "working"],
    ("agents", "rebuild"): ["@"],
    ("mailbox", "list"): ["@"],
    ("mailbox", "show"): ["@", "bosun"],
    ("mailbox", "send"): ["@", "bosun", "Ahoy", "--from", "cook"],
    ("mailbox", "claim"): ["@", "bosun"],
    ("mailbox", "ack"): ["@", "bosun", "none"],
    ("mailbox", "release"): ["@", "bosun", "none"],
    ("mailbox", "corrupt"): ["@", "bosun"],
    ("token", "list"): ["D"],
    ("token", "create"): ["D", "escape"],
    ("token", "revoke"): ["D", "escape"],
    ("worker",): ["--help"],
    ("backup",): ["D", "/nowhere/backup.db"],
    ("prune",): ["D"],
    ("rebuild",): ["D"],
    ("restore",): ["D", "/dev/null"],
    ("models",): [],
    ("pair",): ["D"],
    ("logs",): ["D"],
    ("completion",): ["bash"],
    ("doctor",): ["D"],
}


def test_every_command_is_called_here() -> None:
    """A new command could colour what goes into a file, and nobody would notice."""
    missing = set(leaves(windlass)) - set(CALLS)
    assert not missing, f"give these a row in CALLS: {missing}"
    assert {path[0] for path in CALLS} == set(COMMANDS)


@pytest.mark.parametrize("path", CALLS, ids=" ".join)
def test_no_command_prints_an_escape_code_with_no_color(path: tuple[str, ...], living: LivingServer) -> None:
    """no-color.org: who sets it cannot read colours, or has a terminal that does not know them."""
    named = {**living.sessions, **living.runs}
    arguments = [re.sub(r"\{(.*)\}", lambda match: named[match[1]], word) for word in CALLS[path]]
    options = {"@": living.at(), "D": ["--data-dir", str(living.data_dir)]}
    arguments = [piece for word in arguments for piece in options.get(word, [word])]
    code, text = on_terminal(living.home, *path, *arguments, NO_COLOR="1")
    assert "\x1b" not in text and "Traceback" not in text, text
    assert code in (0, 1, 2)
