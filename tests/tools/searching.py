"""Searching in tests: with ripgrep where there is one, and without it everywhere."""

import os
import shutil
from pathlib import Path
from typing import Any

from windlass.tools.environment import child_environment
from windlass.tools.files import WorkspaceRoot
from windlass.tools.glob import Glob
from windlass.tools.grep import Grep

RIPGREP = shutil.which("rg")
WITHOUT = child_environment({"PATH": "/nonexistent"})
WITH = child_environment({"PATH": os.path.dirname(RIPGREP or "")})


async def grep(root: WorkspaceRoot, pattern: str, environment: dict[str, str] | None = None, **more: Any) -> str:
    plan = Grep(root, WITHOUT if environment is None else environment).plan({"pattern": pattern, **more}, "call")
    return (await plan.run()).content


async def glob(root: WorkspaceRoot, pattern: str, **more: Any) -> str:
    return (await Glob(root, WITHOUT).plan({"pattern": pattern, **more}, "call").run()).content


def make_files(workspace: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
