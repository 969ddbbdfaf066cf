"""A directory whose name is no text: it is refused before it can reach the log, and harms nobody."""

import os
from pathlib import Path

import pytest
from engine_world import BY, EngineWorld, nobody_runs

from windlass.errors import Invalid


async def test_a_link_to_a_directory_whose_name_is_no_text_is_refused_and_the_log_goes_on(tmp_path: Path) -> None:
    """A26: a name that cannot be written down would fail the commit, and with it the whole server."""
    broken = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(broken)
    os.symlink(broken, tmp_path / "link")
    async with EngineWorld(tmp_path, nobody_runs) as world:
        with pytest.raises(Invalid, match="no directory"):
            await world.registry.create(str(tmp_path / "link"), "client", BY)
        workspace = await world.open()
        await workspace.create_session("still writing", BY)
