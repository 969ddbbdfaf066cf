"""What came from the web as text for a model: HTML as Markdown, text and JSON as they are, nothing else.

Everything here takes time, and runs in a thread.
"""

import re

from windlass.tools.tidy_html import tidy, title_of
from windlass.wire.tools import ToolError

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.+|application/(json|xml|javascript|ecmascript|x-javascript|yaml|x-yaml|toml|sql|graphql|x-ndjson|x-sh)"
    r"|application/.+\+(json|xml|yaml)"
)
# Others are slow, or are no encodings of text at all.
_CHARSET = re.compile(
    r"utf-?(8|16|16le|16be|32)|us-ascii|ascii|latin-?1|iso-?8859-\d{1,2}|(windows-|cp)125\d|shift[_-]jis|euc-jp|"
    r"gb2312|gbk|gb18030|big5|euc-kr|koi8-[ru]|macintosh",
    re.IGNORECASE,
)
_META = re.compile(rb"""<meta[^>]{0,200}charset\s{0,9}=\s{0,9}["']?([A-Za-z0-9_-]{1,30})""", re.IGNORECASE)
_MANY_LINES = re.compile(r"\n{3,}")


def readable(body: bytes, content_type: str, charset: str) -> str:
    """The text of a page; ToolError for what is none."""
    is_html = content_type in _HTML or (not content_type and body.lstrip()[:1] == b"<")
    if not is_html and (content_type and _TEXT.fullmatch(content_type) is None):
        raise ToolError(f"This is {content_type[:100]}, not a page of text. Only HTML, text and JSON can be fetched.")
    if not content_type and b"\0" in body:
        raise ToolError("This is no text. Only HTML, text and JSON can be fetched.")
    if is_html and not charset and (found := _META.search(body[:2048])) is not None:
        charset = found[1].decode()
    text = _decoded(body, charset if _CHARSET.fullmatch(charset) else "utf-8")
    return _markdown(text) if is_html else text


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")  # a number that no such encoding has: iso-8859-99


def _markdown(page: str) -> str:
    from markdownify import markdownify  # here: it takes a fifth of a second to import

    title = title_of(page)
    tidied, is_whole = tidy(page)
    text = _MANY_LINES.sub("\n\n", markdownify(tidied, heading_style="ATX")).strip()
    text = f"Title: {title}\n\n{text}" if title else text
    return text if is_whole else f"{text}\n\n[the page is very long: the rest of it was left out]"
