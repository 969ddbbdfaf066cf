"""Names that are bytes and no text, in the tree that a model is shown."""

import os
from pathlib import Path

from windlass.tools.files import WorkspaceRoot
from windlass.tools.ls import Ls


async def test_a_directory_whose_name_is_no_text_is_shown_and_hides_nothing_else(
    root: WorkspaceRoot, workspace: Path
) -> None:
    """A26: one such name would fail the listing of everything, or break the message that carries it."""
    os.makedirs(os.fsencode(workspace) + b"/caf\xe9/deep")
    (workspace / "docs").mkdir()
    (workspace / "docs" / "guide.md").touch()
    output = await Ls(root).plan({"depth": 3}, "call").run()
    assert output.content.encode().splitlines() == [b"./", "  caf\ufffd/".encode(), b"  docs/", b"    guide.md"]
