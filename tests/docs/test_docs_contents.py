"""Pages can be found, and what they repeat from elsewhere is what stands there."""

import re

from tests.docs.pages import ROOT, pages

CONTENTS = pages()["docs/README.md"]
LISTED = re.findall(r"^- \[([\w/.-]+)\]\(([\w/.-]+)\): (.+)", CONTENTS, re.MULTILINE)


def test_every_page_is_in_the_table_of_contents_once() -> None:
    """A page that nobody finds was written for nobody."""
    entrance = {"README.md", "docs/README.md"}
    decisions = {page for page in pages() if page.startswith("docs/decisions/") and not page.endswith("README.md")}
    assert sorted(f"docs/{path}" for _, path, _ in LISTED) == sorted(set(pages()) - entrance - decisions)
    assert all(name == path for name, path, _ in LISTED)


def test_every_decision_is_in_the_list_of_decisions() -> None:
    """The reasons for a choice would be written down where nobody looks."""
    listed = re.findall(r"\]\(([\w-]+\.md)\)", pages()["docs/decisions/README.md"])
    assert [f"docs/decisions/{name}" for name in listed] == [
        page for page in pages() if page.startswith("docs/decisions/") and not page.endswith("README.md")
    ]


def test_the_figures_of_the_readme_are_those_that_were_measured() -> None:
    """A figure that was once true would be advertised for ever."""
    rows = re.findall(r"^\| [^|]+ \| ([\d.,]+ \w+) \| ([\d.,]+ \w+)? ?\|$", pages()["README.md"], re.MULTILINE)
    measured = {
        (ours, bare)
        for ours, bare in re.findall(r"^\| [^|]+ \| ([^|]+?) \| ([^|]*?) \|", pages()["docs/bench.md"], re.MULTILINE)
    }
    assert len(rows) >= 5
    assert [row for row in rows if row not in measured] == []


def test_the_keys_of_the_page_are_those_it_listens_for() -> None:
    """Who learns them from here would press in vain."""
    source = (ROOT / "windlass/page/keys.js").read_text("utf-8").partition("const HELP = [")[2].partition("\n];")[0]
    keys = re.findall(r'\["([^"]+)", "([^"]+)"\]', source)
    assert re.findall(r"^\| `([^`]+)` \| (.+) \|$", pages()["docs/page.md"], re.MULTILINE) == keys


def test_the_readme_is_short() -> None:
    """A first page that takes ten minutes to read is read by nobody."""
    assert len(pages()["README.md"].splitlines()) <= 160
