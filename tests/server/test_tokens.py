"""The store of tokens: what it keeps, whom it knows, and that two processes may use it at once."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.errors import Conflict, Invalid
from windlass.server.private_files import NotPrivate
from windlass.server.tokens import SCOPES, TokenStore


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return TokenStore(tmp_path / "data")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_is_known_by_its_secret(scope: str, store: TokenStore) -> None:
    """Whoever was given a token would stand before a closed door, or get another's rights (A11)."""
    secret = store.create("phone", scope)
    identity = store.identify(secret)
    assert identity is not None and (identity.name, identity.scope) == ("phone", scope)


def test_a_secret_has_256_random_bits(store: TokenStore) -> None:
    """A secret that can be guessed is none (A9 A19)."""
    first, second = store.create("a", "read"), store.create("b", "read")
    assert re.fullmatch(r"wl_[A-Za-z0-9_-]{43}", first) and first[:10] != second[:10]


def test_no_secret_is_kept(store: TokenStore, tmp_path: Path) -> None:
    """A copy of the file, in a backup for instance, would be a copy of every key (A39)."""
    secret = store.create("phone", "operate")
    assert secret not in (tmp_path / "data" / "tokens.json").read_text()
    assert secret.removeprefix("wl_") not in (tmp_path / "data" / "tokens.json").read_text()


def test_tokens_survive_a_restart(store: TokenStore, tmp_path: Path) -> None:
    """Every restart would lock everyone out."""
    secret = store.create("phone", "operate")
    again = TokenStore(tmp_path / "data").identify(secret)
    assert again is not None and again.name == "phone"


@pytest.mark.parametrize("name", ["", "-x", ".x", "a b", "a\nb", "../a", "a" * 65, "ä", "a/b", "a\x00"])
def test_a_name_that_could_be_mistaken_is_refused(name: str, store: TokenStore) -> None:
    """Names are shown in logs and lists: one could pass for something else (A41)."""
    with pytest.raises(Invalid, match="name"):
        store.create(name, "read")


def test_a_scope_that_there_is_not_is_refused(store: TokenStore) -> None:
    """A mistyped scope would be a token nobody can judge (A12)."""
    with pytest.raises(Invalid, match="scope"):
        store.create("phone", "root")


def test_a_name_is_given_once(store: TokenStore) -> None:
    """Revoking by name would leave a second token of that name alive, or kill the wrong one (A10)."""
    store.create("phone", "read")
    with pytest.raises(Conflict):
        store.create("phone", "operate")


def test_a_revoked_token_is_nobodys(store: TokenStore) -> None:
    """A lost device would stay in (A10)."""
    secret = store.create("phone", "operate")
    identity = store.identify(secret)
    assert store.revoke("phone") and not store.revoke("phone")
    assert store.identify(secret) is None
    assert identity is not None and not store.is_live(identity)


def test_a_token_revoked_by_another_process_is_nobodys_at_once(store: TokenStore, tmp_path: Path) -> None:
    """The command line revokes beside the running server, whose memory must not outlive that (A10)."""
    secret = store.create("phone", "operate")
    assert store.identify(secret) is not None
    TokenStore(tmp_path / "data").revoke("phone")
    assert store.identify(secret) is None


def test_a_new_token_of_an_old_name_does_not_keep_the_old_one_alive(store: TokenStore) -> None:
    """Rotating a token would leave the streams of the old one open (A10)."""
    old = store.identify(store.create("phone", "operate"))
    store.revoke("phone")
    store.create("phone", "operate")
    assert old is not None and not store.is_live(old)


def test_the_first_token_is_the_same_until_it_is_revoked(store: TokenStore, tmp_path: Path) -> None:
    """Clients of the same user would have to be told a new token at every start (A2)."""
    first = store.first()
    again = TokenStore(tmp_path / "data")
    assert again.first() == first
    again.revoke("local")
    assert again.first() != first and again.identify(first) is None


def test_a_first_token_whose_file_is_gone_is_replaced(store: TokenStore, tmp_path: Path) -> None:
    """The owner would be locked out of their own server by removing a file (A2)."""
    first = store.first()
    (tmp_path / "data" / "token").unlink()
    assert store.first() != first and store.identify(first) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"tokens": [{"name": "x"}]}'])
def test_a_file_that_cannot_be_read_lets_nobody_in(content: str, store: TokenStore, tmp_path: Path) -> None:
    """A damaged file would leave the old tokens, or every token, good (A1)."""
    secret = store.create("phone", "admin")
    (tmp_path / "data" / "tokens.json").write_text(content)
    assert store.identify(secret) is None


def test_a_file_that_cannot_be_read_is_not_overwritten(store: TokenStore, tmp_path: Path) -> None:
    """Making one token would silently throw all others away."""
    store.create("phone", "admin")
    path = tmp_path / "data" / "tokens.json"
    path.write_text("{")
    store.identify("anything")
    with pytest.raises(ValueError, match=r"JSON|truncated"):
        store.create("tablet", "read")
    assert path.read_text() == "{"


def test_a_file_that_others_may_read_is_refused_at_the_start(store: TokenStore, tmp_path: Path) -> None:
    """The owner would not learn that everyone on the machine can see who has tokens (A13)."""
    store.create("phone", "admin")
    (tmp_path / "data" / "tokens.json").chmod(0o644)
    with pytest.raises(NotPrivate, match="chmod 600"):
        TokenStore(tmp_path / "data")


CREATE_MANY = """
import pathlib, sys
from windlass.server.tokens import TokenStore
store = TokenStore(pathlib.Path(sys.argv[1]))
for number in range(20):
    store.create(f"{sys.argv[2]}-{number}", "read")
"""


def test_two_processes_lose_none_of_each_others_changes(store: TokenStore, tmp_path: Path) -> None:
    """A revoke on the command line could be undone by a browser that logs in at the same moment (A10)."""
    program = [sys.executable, "-c", CREATE_MANY, str(tmp_path / "data")]
    writers = [subprocess.Popen([*program, prefix]) for prefix in ("a", "b")]
    assert [writer.wait(30) for writer in writers] == [0, 0]
    assert len(store.list()) == 40
    assert len(json.loads((tmp_path / "data" / "tokens.json").read_bytes())["tokens"]) == 40
