"""Markdown as HTML that is safe to put into a page: first no HTML is let through, then what was made is cleaned.

The libraries are loaded with the first text: a server that no browser looks at does without them.
"""

import functools
import html
import re
from typing import TYPE_CHECKING, Any

from windlass import limits

if TYPE_CHECKING:
    import nh3
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

# What a parser of Markdown has to stop at: its time goes by these, not by the length of a text.
_MARK = re.compile(r"[!-/:-@\[-`{-~\n]")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+")
_ALIGNMENT = re.compile(r"text-align:(left|right|center)")
_LANGUAGE = re.compile(r"language-[A-Za-z0-9_+#.-]{1,40}")
_TAGS = {
    "a",
    "blockquote",
    "br",
    "code",
    "del",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
}


def to_html(text: str) -> str:
    """The text as safe HTML; one that would take too long to read as Markdown is shown as it was written.

    Takes up to a third of a second: call it in a thread.
    """
    # A half of a surrogate pair is no text that could be sent to anyone.
    text = text.encode("utf-8", "replace").decode()
    if len(text) > limits.MARKDOWN_CHARACTERS or len(_MARK.findall(text)) > limits.MARKDOWN_MARKS:
        return f"<pre>{html.escape(text)}</pre>"
    made: str = _parser(with_tables=_cells(text) <= limits.MARKDOWN_TABLE_CELLS).render(text)
    return _cleaner().clean(made)


def _cells(text: str) -> int:
    """How many cells its tables may have at most: rows that are too short are filled up by the parser, so that a few
    kilobytes become a table of millions."""
    total = columns = lines = 0
    for line in text.split("\n"):
        if line.strip():
            columns, lines = max(columns, line.count("|")), lines + 1
            continue
        total += columns * lines
        columns = lines = 0
    return total + columns * lines


@functools.cache
def _parser(with_tables: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt

    options = {"html": False, "maxNesting": limits.MARKDOWN_NESTING}
    parser = MarkdownIt("commonmark", options).enable(["strikethrough", *(["table"] if with_tables else [])])
    parser.core.ruler.push("windlass", _rework)
    parser.render("a *b*\n\n> c")  # its rules are put together now, before two threads could do so at once
    return parser


@functools.cache
def _cleaner() -> "nh3.Cleaner":
    import nh3

    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes={"*": set(), "a": {"href"}, "code": {"class"}, "ol": {"start"}},
        tag_attribute_values={tag: {"align": {"left", "right", "center"}} for tag in ("td", "th")},
        attribute_filter=_filtered,
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer",
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",  # a path in a model's answer is a file of the project, not a place on this server
    )


def _filtered(tag: str, attribute: str, value: str) -> str | None:
    """A class could make text look like a part of our page, so only a language is one."""
    if attribute == "class":
        return value if _LANGUAGE.fullmatch(value) else None
    return value


# -- what is changed of a parsed text ---------------------------------------------------------------------------------


def _rework(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("th_open", "td_open"):
            _align(token)
        elif token.type == "inline" and token.children:
            token.children = _reworked(token.children)


def _align(token: "Token") -> None:
    """The alignment of a column, not as a style: the page's policy allows none in markup."""
    style = token.attrs.pop("style", "")
    if found := _ALIGNMENT.fullmatch(str(style)):
        token.attrs["align"] = found[1]


def _reworked(children: "list[Token]") -> "list[Token]":
    """Addresses become links; so do pictures: loading one would tell its owner who reads this, and when (A42)."""
    reworked: list[Token] = []
    in_link = 0
    for child in children:
        in_link += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        if child.type == "image":
            # The words for it are text, whatever they contain.
            label = child.content or str(child.attrs.get("src", ""))
            reworked += [_text(label)] if in_link else _link(str(child.attrs.get("src", "")), label)
        elif child.type == "text" and not in_link:
            reworked += _with_links(child.content)
        else:
            reworked.append(child)
    return reworked


def _with_links(text: str) -> "list[Token]":
    tokens: list[Token] = []
    at = 0
    for found in _ADDRESS.finditer(text):
        address = found[0].rstrip(".,;:!?*_~)" if "(" not in found[0] else ".,;:!?*_~")
        tokens += [_text(text[at : found.start()]), *_link(address, address)]
        at = found.start() + len(address)
    return [*tokens, _text(text[at:])]


def _link(address: str, label: str) -> "list[Token]":
    from markdown_it.token import Token

    return [Token("link_open", "a", 1, attrs={"href": address}), _text(label), Token("link_close", "a", -1)]


def _text(content: str) -> "Token":
    from markdown_it.token import Token

    return Token("text", "", 0, content=content)
