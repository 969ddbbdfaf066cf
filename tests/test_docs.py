"""The docs tell the truth about the tree. What they show is executed by tests/docs."""

from pathlib import Path
from typing import get_args

import pytest

from windlass.wire.events import FactKind

ROOT = Path(__file__).parent.parent
MODULES = [path.relative_to(ROOT / "windlass") for path in sorted((ROOT / "windlass").rglob("*.py"))]


@pytest.mark.parametrize("module", [str(module) for module in MODULES if module.name != "__init__.py"])
def test_the_walk_through_the_tree_names_every_file(module: str) -> None:
    """A newcomer would stand before a file that nobody introduced."""
    walk = (ROOT / "docs" / "architecture.md").read_text()
    room = str(Path(module).parent)
    heading = "### `windlass/`" if room == "." else f"### `windlass/{room}/`"
    section = walk.partition(heading)[2].partition("\n### ")[0]
    assert f"- `{Path(module).name}`: " in section


def test_every_link_between_the_docs_leads_somewhere() -> None:
    """A reader would click into nothing."""
    broken = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in page.read_text().split("](")[1:]:
            address = target.partition(")")[0].partition("#")[0]
            if address and "://" not in address and not (page.parent / address).exists():
                broken.append(f"{page.name}: {address}")
    assert broken == []


def test_the_stream_page_names_every_kind_of_fact_that_is_sent() -> None:
    """Whoever writes a client from it would meet events that nobody told of."""
    page = (ROOT / "docs" / "events.md").read_text()
    later = {"lsp_event", "skills_event"}
    missing = [kind for kind in get_args(FactKind) if f"`{kind}`" not in page and kind not in later]
    assert missing == []
