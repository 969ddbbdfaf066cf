"""A workspace directory with something outside it that must never be reached."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.tools.files import WorkspaceRoot


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    (tmp_path / "secret").write_text("SECRET")
    return directory


@pytest.fixture
def root(workspace: Path) -> Iterator[WorkspaceRoot]:
    root = WorkspaceRoot(str(workspace))
    yield root
    root.close()
