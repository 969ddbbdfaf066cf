"""The page as a browser gets it: its files, what they may do, and what someone is told who is not let in."""

import base64
import gzip
import hashlib
import os
import re
from pathlib import Path

import pytest
import pytest_asyncio
from door_client import Answer, DoorClient

from windlass.server.page_files import PAGE_DIRECTORY, PageFiles

served = pytest.mark.asyncio(loop_scope="session")

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types windlass"
)
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
EDITION = re.compile(r'"/page/([^/"]*)/')
NAMES = sorted(path.name for path in PAGE_DIRECTORY.iterdir() if path.is_file())


@pytest_asyncio.fixture(loop_scope="session")
async def page(door: DoorClient) -> Answer:
    return await door.send("GET", "/", token=door.server.token)


@served
async def test_the_front_page_is_the_page(page: Answer) -> None:
    """A browser would show something else than what we ship."""
    assert page.status == 200
    assert len(set(EDITION.findall(page.text))) == 1
    ours = (PAGE_DIRECTORY / "index.html").read_text().splitlines()
    assert [line for line in EDITION.sub('"/page/', page.text).splitlines() if line not in ours] == [
        '    <link rel="stylesheet" href="/page/all.css">',
        '    <script type="module" src="/page/all.js"></script>',
    ]
    assert page.headers["content-type"] == "text/html; charset=utf-8"


@served
async def test_the_page_is_held_to_a_strict_policy(page: Answer) -> None:
    """One slip in a script would be enough for a model's words to act with a person's rights (A41)."""
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["cross-origin-opener-policy"] == "same-origin"


@served
async def test_the_page_has_nothing_that_its_policy_forbids(page: Answer) -> None:
    """The policy would break the page, or be loosened for its sake (A41)."""
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", page.text, re.IGNORECASE)
    assert not re.findall(r"""(?:src|href)=["']?(?!/|#|data:)[^"'\s>]*//""", page.text)


@served
@pytest.mark.parametrize("name", NAMES)
async def test_every_file_of_the_page_is_served_as_what_it_is(name: str, door: DoorClient) -> None:
    """A browser told not to guess would refuse a script that is sent as something else."""
    answer = await door.send("GET", f"/page/{name}", token=door.server.token)
    kinds = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
    kind = kinds.get(Path(name).suffix)
    assert answer.status == 200
    assert kind is None or answer.headers["content-type"].partition(";")[0] == kind
    assert answer.headers["content-security-policy"] == POLICY


@served
async def test_a_file_that_a_browser_has_is_not_sent_again(door: DoorClient) -> None:
    """Every visit over a phone's link would load everything anew; or an upgrade would not be seen."""
    first = await door.send("GET", "/page/dom.js", token=door.server.token)
    assert first.headers["cache-control"] == "no-cache"
    headers = {"If-None-Match": first.headers["etag"]}
    again = await door.send("GET", "/page/dom.js", token=door.server.token, headers=headers)
    assert (again.status, again.text) == (304, "")
    other = await door.send("GET", "/page/dom.js", token=door.server.token, headers={"If-None-Match": 'W/"old"'})
    assert (other.status, other.text) == (200, first.text)


@served
@pytest.mark.parametrize("name", ["main.js", "style.css", "icon.svg"])
async def test_a_file_of_this_edition_is_asked_for_once(name: str, page: Answer, door: DoorClient) -> None:
    """Every visit would ask seventy times whether anything has changed."""
    edition = EDITION.findall(page.text)[0]
    kept = await door.send("GET", f"/page/{edition}/{name}", token=door.server.token)
    now = await door.send("GET", f"/page/{name}", token=door.server.token)
    assert (kept.status, kept.text) == (200, now.text)
    assert kept.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert kept.headers["content-security-policy"] == POLICY


@served
async def test_a_file_of_another_edition_is_not_kept(door: DoorClient) -> None:
    """A tab of before an upgrade would have a new file for an old one, for good."""
    answer = await door.send("GET", "/page/" + "0" * 32 + "/dom.js", token=door.server.token)
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-cache")


@served
async def test_a_browser_that_can_unpack_is_sent_less(door: DoorClient) -> None:
    """The first visit over a phone's link would take three times as long."""
    plain = await door.send("GET", "/page/dom.js", token=door.server.token)
    packed = await door.send("GET", "/page/dom.js", token=door.server.token, headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers
    assert packed.text == plain.text
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])


OUTSIDE = ["nothing.js", "__init__.py", "..", "%2e%2e%2fserver%2fdoor.py", "..%2fapp.py", "%00", "dom.js%00", "DOM.JS"]


@served
@pytest.mark.parametrize("name", [*OUTSIDE, "../limits.py", "/etc/passwd", "dom.js/", "x" * 3000, "%ff", "..%5capp.py"])
async def test_nothing_but_the_files_of_the_page_is_served(name: str, door: DoorClient) -> None:
    """Any file of the machine could be read through the page (A20)."""
    answer = await door.send("GET", f"/page/{name}", token=door.server.token)
    kept = await door.send("GET", f"/page/{'0' * 32}/{name}", token=door.server.token)
    assert answer.status == kept.status and answer.status in (404, 200)
    assert answer.status == 404 or name == "dom.js/"  # the framework takes a slash at the end for none


@served
async def test_a_browser_without_a_key_is_told_what_to_do(door: DoorClient) -> None:
    """A person would be shown a line of JSON about headers (A1)."""
    answer = await door.send("GET", "/", headers=BROWSER)
    assert (answer.status, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "windlass pair" in answer.text and "href=/>" in answer.text


@served
@pytest.mark.parametrize("target", ["/?ticket=used-up", "/"])
async def test_what_a_stranger_is_shown_can_do_nothing(target: str, door: DoorClient) -> None:
    """The page for those outside would be the one page without a policy (A41)."""
    answer = await door.send("GET", target, headers={**BROWSER, "Cookie": "windlass=wl_old"})
    assert answer.status == 401
    policy = answer.headers["content-security-policy"]
    style = re.search(r"<style>(.*?)</style>", answer.text)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert "<script" not in answer.text


@served
async def test_a_browser_with_a_used_ticket_is_told_to_ask_for_another(door: DoorClient) -> None:
    """A person who opens the link twice would not know why it works no more (A3)."""
    ticket = (await door.send("POST", "/v1/tickets", token=door.server.token)).json["path"]
    assert (await door.send("GET", ticket, headers=BROWSER)).status == 303
    answer = await door.send("GET", ticket, headers=BROWSER)
    assert answer.status == 401 and "used already" in answer.text and "<h1>" in answer.text


@served
async def test_a_program_is_answered_in_json(door: DoorClient) -> None:
    """A script that tries the front page would have to read HTML."""
    for target in ("/", "/?ticket=used-up"):
        answer = await door.send("GET", target, headers={"Accept": "*/*"})
        assert answer.status == 401 and answer.message


@served
async def test_only_the_front_page_is_refused_with_a_page(door: DoorClient) -> None:
    """A script of the page would get HTML where it expects JSON."""
    answer = await door.send("GET", "/v1/version", headers=BROWSER)
    assert answer.status == 401 and "Bearer" in answer.message


@served
async def test_a_host_in_the_address_cannot_write_into_the_page(door: DoorClient) -> None:
    """Who makes a person open an address could put markup into what we answer (A41)."""
    answer = await door.send("GET", "/", headers={**BROWSER, "Host": "<img src=x onerror=alert(1)>"})
    assert answer.status == 421
    assert "<img" not in answer.text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A page of one's own."""
    (tmp_path / "index.html").write_text('<script src="/page/a.js">')
    return tmp_path


def test_a_changed_file_is_noticed(folder: Path) -> None:
    """Whoever works on the page would have to restart the server for each change; or be served half of one."""
    files = PageFiles(folder)
    script = folder / "a.js"
    script.write_text("first")
    before = files.current().files.get("a.js")
    script.write_text("second")
    os.utime(script, ns=(1, 1))
    after = files.current().files.get("a.js")
    assert before is not None and after is not None
    assert (before.content, after.content) == (b"first", b"second")
    assert before.etag != after.etag


def test_a_change_makes_a_new_edition_that_the_front_page_names(folder: Path) -> None:
    """A browser would go on with the files that it keeps for good, of before an upgrade."""
    files = PageFiles(folder)
    (folder / "a.js").write_text("first")
    before = files.current()
    assert files.current() is before and files.kept(before.name) is before
    (folder / "a.js").write_text("a second")
    after = files.current()
    assert after.name != before.name and files.kept(before.name) is None
    assert after.front.content == f'<script src="/page/{after.name}/a.js">'.encode()
    assert after.front.etag != before.front.etag


def test_an_added_file_is_served_and_a_removed_one_is_not(folder: Path) -> None:
    """The table would not be what is in the folder."""
    files = PageFiles(folder)
    assert files.current().files.get("a.js") is None
    (folder / "a.js").write_text("here")
    assert files.current().files.get("a.js") is not None
    (folder / "a.js").unlink()
    assert files.current().files.get("a.js") is None


def test_only_kinds_of_files_that_a_page_has_are_served(folder: Path) -> None:
    """A note or a key that was left in the folder would be served to whoever asks (A20)."""
    for name in ("notes.txt", "a.py", ".env", "js"):
        (folder / name).write_text("private")
    (folder / "deep.js").mkdir()
    files = PageFiles(folder)
    assert [files.current().files.get(name) for name in ("notes.txt", "a.py", ".env", "js", "deep.js")] == [None] * 5


def test_what_is_packed_is_the_same_content(folder: Path) -> None:
    """A browser would run something else than a program that does not unpack is sent."""
    (folder / "a.css").write_text("body { color: red }\n" * 100)
    (folder / "b.css").write_text("x")
    files = PageFiles(folder)
    large, small = files.current().files.get("a.css"), files.current().files.get("b.css")
    assert large is not None and small is not None
    assert gzip.decompress(large.packed) == large.content
    assert small.packed == b""  # it would only be longer
