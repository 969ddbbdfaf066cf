"""Pages as text for a model: HTML as Markdown in bounded time, text as it is, and nothing else."""

import time

import pytest

from windlass import limits
from windlass.tools.readable import readable
from windlass.wire.tools import ToolError

PAGE = """<!doctype html><html><head><title>A &amp; B</title><style>p { color: red }</style></head>
<body><nav><a href="/home">Home</a></nav><h1>Hello</h1><p>Some <b>bold</b> words,<br>and a
<a href='x?a=1&amp;b=2'>link</a>.
<ul><li>one<li>two</ul><pre>  code  here</pre><script>alert("no")</script><!-- no --><table><tr><th>k<th>v</tr></table>
1 < 2 &lt;b&gt; <unknown>kept</unknown><img src=i.png alt="a picture"></body></html>"""


def test_html_becomes_markdown() -> None:
    """A model would spend its window on tags."""
    text = readable(PAGE.encode(), "text/html", "utf-8")
    for part in ("Title: A & B", "# Hello", "**bold**", "[link](x?a=1&b=2)", "* one", "  code  here", "1 < 2", "kept"):
        assert part in text, part
    for part in ("alert", "color", "no -->", "<table"):
        assert part not in text, part


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json", "text/markdown", "application/ld+json", "text/csv", ""]
)
def test_text_is_left_as_it_is(kind: str) -> None:
    """JSON with a tag in a string would come back as something else."""
    assert readable(b'{"a": "<b>x</b>  y"}', kind, "") == '{"a": "<b>x</b>  y"}'


@pytest.mark.parametrize("charset", ["iso-8859-99", "windows-1259", "utf16le"])
def test_an_encoding_that_there_is_not_is_taken_for_utf_8(charset: str) -> None:
    """Anyone's page could end a run: nothing but a ToolError is expected of a tool."""
    assert "é" in readable("<p>é</p>".encode(), "text/html", charset)
    assert "é" in readable(f"<meta charset={charset}><p>é</p>".encode(), "text/html", "")


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream", "video/mp4"])
def test_other_kinds_are_refused_by_name(kind: str) -> None:
    """A model would be told megabytes of nonsense."""
    with pytest.raises(ToolError, match=kind):
        readable(b"x", kind, "")


def test_bytes_without_a_name_are_refused() -> None:
    """A model would be told megabytes of nonsense."""
    with pytest.raises(ToolError, match="no text"):
        readable(b"\x7fELF\0\0", "", "")


def test_the_encoding_is_the_one_that_the_page_names() -> None:
    """A page of another country would be question marks."""
    page = '<meta charset="windows-1251"><p>Привет</p>'
    assert readable(page.encode("windows-1251"), "text/html", "") == "Привет"
    assert readable("héllo".encode("latin-1"), "text/plain", "iso-8859-1") == "héllo"


@pytest.mark.parametrize("charset", ["unicode_escape", "punycode", "idna", "hex", "nonsense", "utf-7"])
def test_an_encoding_that_is_none_is_not_used(charset: str) -> None:
    """A38: some decode in quadratic time, and some make other characters of what everyone else reads."""
    assert readable(b"a\\x41-b", "text/plain", charset) == "a\\x41-b"


@pytest.mark.parametrize(
    "piece",
    ["<a ", "<!--", '<a x="', "<div>", "<b><br></b>", "<script>", "&", "</div>", "<title ", "<img " + "a= " * 1300],
)
def test_a_page_that_was_written_to_take_long_does_not(piece: str) -> None:
    """A38: one page could keep a thread of the server busy for hours, or end it with a recursion that is too deep."""
    before = time.monotonic()
    readable((piece * (limits.FETCH_BYTES // len(piece))).encode(), "text/html", "")
    assert time.monotonic() - before < 20


def test_a_long_page_is_cut_and_says_so() -> None:
    """A model would take the half for the whole."""
    assert "left out" in readable(b"<p>word</p>" * 100_000, "text/html", "")
