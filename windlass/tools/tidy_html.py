"""HTML as anyone may write it, made small and regular in one pass, so that it can be converted in bounded time.

Python's own parser takes minutes for sixty kilobytes of `<a <a <a`, and what walks its tree recurses. After this there
are only tags with a meaning for a reader, closed in order, nested no deeper than a bound, with attributes that matter.
"""

import html
import re

from windlass import limits

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,19})([^<>]{0,4000})>")
_ATTRIBUTE = re.compile(r"""([A-Za-z]{1,20})\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_SPACE = re.compile(r"\s+")
_KEPT = frozenset(
    {
        *("a", "b", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5"),
        *("h6", "hr", "i", "img", "li", "ol", "p", "pre", "s", "strong", "sub", "sup", "table", "tbody", "td", "th"),
        *("thead", "tr", "ul"),
    }
)
_BLOCKS = frozenset(
    {
        *("address", "article", "aside", "details", "fieldset", "figure", "footer", "form", "header", "main", "nav"),
        *("section", "summary"),
    }
)
_VOID = frozenset(("br", "hr", "img"))
_DROPPED = frozenset(
    ("canvas", "iframe", "math", "noscript", "object", "script", "style", "svg", "template", "textarea", "title")
)
_ATTRIBUTES = {"a": ("href", "title"), "img": ("src", "alt", "title")}
_TITLE = re.compile(r"<title[^<>]{0,500}>([^<]{0,500})", re.IGNORECASE)


def title_of(page: str) -> str:
    """What the page calls itself, on one line."""
    found = _TITLE.search(page, 0, limits.FETCH_BYTES)
    return "" if found is None else " ".join(html.unescape(found[1]).split())


def tidy(page: str) -> tuple[str, bool]:
    """The page with nothing in it that takes long to read, and whether that is all of it."""
    tidier = _Tidier(page)
    tidier.run()
    return "".join(tidier.written), tidier.is_whole


class _Tidier:
    def __init__(self, page: str) -> None:
        self._page = page
        self._open: list[str] = []
        self._size = 0
        self._tags = 0
        self.is_whole = False
        self.written: list[str] = []

    def run(self) -> None:
        place = 0
        while self._size < limits.FETCH_HTML_CHARACTERS and self._tags < limits.FETCH_HTML_TAGS:
            start = self._page.find("<", place)
            if start < 0:
                self.is_whole = len(self._page) - place <= limits.FETCH_HTML_CHARACTERS - self._size
                self._text(self._page[place:])
                break
            if start > place:
                self._text(self._page[place:start])
            place = self._markup(start)
        while self._open:
            self._write(f"</{self._open.pop()}>")

    def _markup(self, start: int) -> int:
        """Take what begins with this `<`; returns where to go on."""
        self._size += 1  # also for what is left out: a page of nothing else would take as long
        if self._page.startswith("<!--", start):
            return self._after("-->", start + 4)
        if self._page.startswith(("<!", "<?"), start):
            return self._after(">", start + 2)
        tag = _TAG.match(self._page, start)
        if tag is None:
            self._write("&lt;")
            return start + 1
        closes, name = bool(tag[1]), tag[2].lower()
        if name in _DROPPED and not closes:
            # Without its end the rest of the page belongs to it, as in a browser.
            end = re.compile(f"</{name}[^<>]{{0,100}}>", re.IGNORECASE).search(self._page, tag.end())
            return len(self._page) if end is None else end.end()
        name = "div" if name in _BLOCKS else name
        if name in _KEPT:
            self._close(name) if closes else self._begin(name, tag[3])
        return tag.end()

    def _after(self, mark: str, start: int) -> int:
        end = self._page.find(mark, start)
        return len(self._page) if end < 0 else end + len(mark)

    def _begin(self, name: str, attributes: str) -> None:
        if name not in _VOID:
            if len(self._open) >= limits.FETCH_HTML_DEPTH:
                return
            self._open.append(name)
        self._tags += 1
        self._write(f"<{name}{self._kept(name, attributes)}>")

    def _kept(self, name: str, attributes: str) -> str:
        wanted = _ATTRIBUTES.get(name, ())
        found: dict[str, str] = {}
        for key, *values in _ATTRIBUTE.findall(attributes) if wanted else ():
            if key.lower() in wanted:
                found.setdefault(key.lower(), html.escape(html.unescape("".join(values)))[:2000])
        return "".join(f' {key}="{value}"' for key, value in found.items())

    def _close(self, name: str) -> None:
        if name in self._open:
            while (last := self._open.pop()) != name:
                self._write(f"</{last}>")
            self._write(f"</{name}>")

    def _text(self, text: str) -> None:
        text = text[: limits.FETCH_HTML_CHARACTERS - self._size]
        if "pre" not in self._open:
            text = _SPACE.sub(" ", text)
        self._write(text.replace(">", "&gt;"))

    def _write(self, piece: str) -> None:
        self._size += len(piece)
        self.written.append(piece)
