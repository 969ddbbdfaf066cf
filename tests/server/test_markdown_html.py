"""Markdown becomes HTML that can do nothing but be read, whatever was written (A41)."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass import limits
from windlass.server.markdown_html import to_html

TAGS = {
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
ATTRIBUTES = {
    "href": re.compile(r"(https?|mailto):.*", re.IGNORECASE | re.DOTALL),
    "class": re.compile(r"language-[\w+#.-]{1,40}"),
    "align": re.compile(r"left|right|center"),
    "start": re.compile(r"\d+"),
    "target": re.compile(r"_blank"),
    "rel": re.compile(r"noopener noreferrer"),
}


class Inspector(HTMLParser):
    """Reads HTML as a browser would, and says what is in it that must not be."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self.wrong.append(tag)
        for name, value in attrs:
            pattern = ATTRIBUTES.get(name)
            if pattern is None or not pattern.fullmatch(value or ""):
                self.wrong.append(f"{tag} {name}={value!r}")

    def handle_comment(self, data: str) -> None:
        self.wrong.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.wrong.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.wrong.append("processing instruction")

    def unknown_decl(self, data: str) -> None:
        self.wrong.append("unknown declaration")


def wrong_in(html: str) -> list[str]:
    inspector = Inspector()
    inspector.feed(html)
    inspector.close()
    return inspector.wrong


HOSTILE = [
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href=javascript:alert(1)>x</a>",
    "<div style='background:url(//evil.example)'>x</div>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<form action=//evil.example><button>x</button></form>",
    "<!-- --><img src=x onerror=alert(1)>",
    "<?php echo 1 ?>",
    "<![CDATA[ <img src=x onerror=alert(1)> ]]>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](&#x6A;&#x61;vascript&colon;alert(1))",
    "[x](javascript&#58;alert(1))",
    "[x](\\javascript:alert(1))",
    "[x](%6Aavascript:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](vbscript:msgbox(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](file:///etc/passwd)",
    "[x](blob:https://evil.example/1)",
    "[x](//evil.example)",
    "[x](/v1/control)",
    "[x](#top)",
    '[x](http://a.example "onmouseover=alert(1)")',
    '[x](http://a.example/"onmouseover="alert(1))',
    '[x](<http://a.example/" onmouseover="alert(1)>)',
    "[x]: javascript:alert(1)\n\n[x]",
    "[x][y]\n\n[y]: <data:text/html,x> 'title'",
    "<javascript:alert(1)>",
    "<data:text/html,alert(1)>",
    '<http://a.example/"onmouseover=alert(1)>',
    'http://a.example/"onmouseover=alert(1)',
    "http://a.example/<img/src=x onerror=alert(1)>",
    "https://a.example/'><script>alert(1)</script>",
    "![x](javascript:alert(1))",
    "![x](http://evil.example/pixel.png)",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)",
    '!["onerror="alert(1)](http://evil.example)',
    "![<img src=x onerror=alert(1)>](http://evil.example)",
    "[![x](http://evil.example/a.png)](javascript:alert(1))",
    '```"><img src=x onerror=alert(1)>\ncode\n```',
    '```language" onmouseover="alert(1)\ncode\n```',
    "``` secret-class our-button\ncode\n```",
    "`<img src=x onerror=alert(1)>`",
    "    <img src=x onerror=alert(1)>",
    "|a|\n|:-:|\n|<img src=x onerror=alert(1)>|",
    "|a|\n|-|\n|`</td><script>alert(1)</script>`|",
    "# <script>alert(1)</script>",
    "> <script>\n> alert(1)\n> </script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\<script>alert(1)\\</script>",
    "a\x00<script>alert(1)</script>",
    "\ud800<script>alert(1)</script>\udfff",
    "\u2028<script>alert(1)</script>",
    "***<img src=x onerror=alert(1)>***",
    "~~<img src=x onerror=alert(1)>~~",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_was_written_becomes_more_than_text(text: str) -> None:
    """A model, or a file that it quotes, could act with the rights of whoever looks at the conversation (A41)."""
    assert wrong_in(to_html(text)) == []


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_becomes_more_than_text_in_the_middle_of_other_marks(text: str) -> None:
    """What is harmless alone could be made whole by what stands around it (A41)."""
    assert wrong_in(to_html(f"- **a** [b]({text}) *{text}*\n\n  > {text}\n\n| {text} |\n|-|\n| x |")) == []


MARKS = list("<>\"'[]()!`*_|\n -#&;\\:a")
WORDS = [
    "javascript:",
    "http://x.y/",
    "<img src=x onerror=1>",
    "<script>",
    "&#x3c;",
    "data:",
    "|-|\n",
    "```",
    "on=",
    "~~",
]
PIECES = st.sampled_from([*MARKS, *WORDS])


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_whatever_is_written_only_harmless_markup_comes_out(text: str) -> None:
    """A combination nobody thought of would be found by someone else (A41)."""
    assert wrong_in(to_html(text)) == []


SHOWN = {
    "**bold** and *soft*": "<p><strong>bold</strong> and <em>soft</em></p>",
    "~~gone~~": "<p><s>gone</s></p>",
    "# Title": "<h1>Title</h1>",
    "```py\nx < 1\n```": '<pre><code class="language-py">x &lt; 1\n</code></pre>',
    "`a`": "<p><code>a</code></p>",
    "3. c\n4. d": '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>',
    "> q": "<blockquote>\n<p>q</p>\n</blockquote>",
    "a<b>c": "<p>a&lt;b&gt;c</p>",
}


@pytest.mark.parametrize(("text", "html"), SHOWN.items())
def test_markdown_is_shown_as_what_it_means(text: str, html: str) -> None:
    """An answer would be a heap of marks."""
    assert to_html(text).strip() == html


def link(address: str, label: str) -> str:
    return f'<a href="{address}" target="_blank" rel="noopener noreferrer">{label}</a>'


def test_a_link_opens_elsewhere_and_tells_nothing() -> None:
    """Following a link would take the page away, or tell its owner where one came from (A41)."""
    assert to_html("[x](https://a.example/b?c=1)").strip() == f"<p>{link('https://a.example/b?c=1', 'x')}</p>"


def test_a_bare_address_becomes_a_link_without_the_full_stop() -> None:
    """People would have to copy the address of the server that the agent has just started."""
    made = to_html("See http://localhost:3000/a. (And https://b.example/c)").strip()
    second = link("https://b.example/c", "https://b.example/c")
    assert made == f"<p>See {link('http://localhost:3000/a', 'http://localhost:3000/a')}. (And {second})</p>"


def test_an_address_in_a_link_or_in_code_is_left_alone() -> None:
    """A link within a link would be taken apart by the browser; code would not be what was written."""
    assert to_html("[http://a.example](http://b.example)").count("<a ") == 1
    assert "<a" not in to_html("`http://a.example`")


def test_a_picture_is_a_link_and_is_not_loaded() -> None:
    """Its owner would learn who reads the conversation and when, and could be sent what is in it (A42)."""
    made = to_html("![a *cat*](http://evil.example/cat.png)")
    assert "<img" not in made
    assert link("http://evil.example/cat.png", "a *cat*") in made


def test_the_columns_of_a_table_keep_their_alignment_without_a_style() -> None:
    """The policy of the page would refuse a style, and complain of it."""
    made = to_html("|a|b|\n|:-:|--:|\n|1|2|")
    assert '<th align="center">a</th>' in made and '<td align="right">2</td>' in made and "style" not in made


def test_a_class_is_the_language_of_code_and_nothing_else() -> None:
    """A text could look like a button of ours (A41)."""
    assert 'class="language-c++"' in to_html("```c++\nx\n```")
    assert "class" not in to_html("```a&b\nx\n```")


N = 9_000
SLOW = {
    "quotes": ">" * N,
    "deep quotes": ("> " * 50 + "a\n") * (N // 100),
    "brackets": "[" * N,
    "pairs of brackets": "[]" * (N // 2),
    "links in links": "[a](" * (N // 4),
    "pictures": "![" * (N // 2),
    "stars": "*a " * 5_000,
    "stars and lines": "*a_" * (N // 2),
    "many stars": "*" * N,
    "backticks": "".join("`" * length + " " for length in range(1, 130)),
    "code": "`a" * N,
    "wide table": "|a" * (N // 3) + "|\n" + "|-" * (N // 3) + "|\n",
    "long table": "|a|b|\n|-|-|\n" + "|x|y|\n" * (N // 4),
    "table that is filled up": "|x" * 1_000 + "\n" + "|-" * 1_000 + "\n" + "a\n" * 3_000,
    "lists": "- a\n" * (N // 2),
    "lists in lists": "- " * (N // 2),
    "definitions": "".join(f"[{number}]: /x\n" for number in range(N // 5)),
    "entities": "&amp;" * (N // 2),
    "addresses": "http://a.b " * (N // 5),
    "addresses in brackets": "<http://a.b>" * (N // 7),
    "strikes": "~~" * (N // 2),
    "one long word": "a" * 200_000,
    "one long blank": " " * 200_000 + "a",
    "many more brackets": "[" * 200_000,
    "a megabyte": "a *b* `c` [d](http://e) \n" * 40_000,
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW)
def test_no_text_takes_long(text: str) -> None:
    """One message could keep the server busy for minutes, for everyone (A38)."""
    to_html("a | b")  # what is loaded once is not counted
    started = time.thread_time()
    made = to_html(text)
    assert time.thread_time() - started < 1.5  # 0.3 where nothing else runs, and this machine may be slow
    assert wrong_in(made) == []
    assert len(made) < 12 * len(text) + 200_000


def test_a_text_that_is_too_much_is_shown_as_it_was_written() -> None:
    """A long answer would be missing, or cut (B19)."""
    text = "*a* <b>\n" * limits.MARKDOWN_MARKS
    assert to_html(text) == "<pre>" + text.replace("<b>", "&lt;b&gt;") + "</pre>"


def test_a_long_text_of_prose_is_still_read_as_markdown() -> None:
    """The bounds would be felt by people, not only by attackers."""
    text = "The quick *brown* fox jumps over the lazy dog, and then it rests for a very long while.\n" * 500
    assert len(text) > 40_000
    assert to_html(text).count("<em>brown</em>") == 500
