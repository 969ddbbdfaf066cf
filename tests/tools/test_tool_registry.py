"""The registry: the allowed tools, in an order that never changes."""

import pytest

from windlass.tools.edit import Edit
from windlass.tools.files import WorkspaceRoot
from windlass.tools.ls import Ls
from windlass.tools.read_files import ReadFiles
from windlass.tools.registry import ToolRegistry
from windlass.tools.view import View
from windlass.tools.write import Write


def test_the_order_does_not_depend_on_the_order_of_construction(root: WorkspaceRoot) -> None:
    """A provider's cache would be lost with every restart."""
    one = ToolRegistry([View(root, ReadFiles()), Ls(root), Edit(root, ReadFiles())])
    other = ToolRegistry([Edit(root, ReadFiles()), View(root, ReadFiles()), Ls(root)])
    assert one.specs() == other.specs()
    assert [spec.name for spec in one.specs()] == ["edit", "ls", "view"]


def test_only_allowed_tools_are_offered(root: WorkspaceRoot) -> None:
    """A tool the user switched off would still be called."""
    registry = ToolRegistry([View(root, ReadFiles()), Ls(root), Write(root, ReadFiles())], ["view", "l*"])
    assert ([tool.name for tool in registry], registry.get("write")) == (["ls", "view"], None)


def test_two_tools_of_one_name_are_refused(root: WorkspaceRoot) -> None:
    """A32: one would act under the other's permissions."""
    with pytest.raises(ValueError, match="view"):
        ToolRegistry([View(root, ReadFiles()), View(root, ReadFiles())])
