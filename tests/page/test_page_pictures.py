"""The pictures of the README are of the page as it is: made from a scripted session, at fixed sizes.

They are written into the tree with `python -m tests.page.pictures`, and to a temporary directory otherwise.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.page.page_world import PHONE, PageWorld, address
from tests.page.shown import everything

pytestmark = pytest.mark.asyncio(loop_scope="session")

ARE_ASKED_FOR = bool(os.environ.get("WINDLASS_PICTURES"))
IN_TREE = Path(__file__).parents[2] / "docs" / "pictures"
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PICTURES = {
    "desktop": {**DESKTOP, "color_scheme": "light"},
    "desktop-dark": {**DESKTOP, "color_scheme": "dark"},
    "phone": {**PHONE, "color_scheme": "light"},
    "phone-dark": {**PHONE, "color_scheme": "dark"},
}
LARGEST_BYTES = 200_000  # a README that loads slowly is not read
SMALLEST_BYTES = 15_000  # an empty page compresses to less


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """Its name is in the pictures: a plain one then, which only one test at a time can have."""
    directory = Path(tempfile.gettempdir() if ARE_ASKED_FOR else tmp_path, "anchor")
    directory.mkdir()
    yield directory
    shutil.rmtree(directory)


async def test_the_pictures_of_the_readme_can_be_made_from_the_page_as_it_is(world: PageWorld, tmp_path: Path) -> None:
    """The README would show a page that nobody gets to see."""
    target = IN_TREE if ARE_ASKED_FOR else tmp_path
    target.mkdir(parents=True, exist_ok=True)
    client = await world.client()
    for title in ("Name the release", "Why is the build slow?"):
        await client.new_session(title)
    shown = await everything(world, client)
    for name, options in PICTURES.items():
        screen = await world.screen(address(client, shown.session_id), **options)
        await screen.is_live()
        await expect(screen("permission-card")).to_be_visible()
        await expect(screen("conversation").locator("table")).to_have_count(1)  # its Markdown has been drawn
        picture = await screen.page.screenshot(path=target / f"{name}.png", animations="disabled", caret="hide")
        assert SMALLEST_BYTES < len(picture) < LARGEST_BYTES, f"{name}.png has {len(picture)} bytes"
        await screen.page.context.close()
