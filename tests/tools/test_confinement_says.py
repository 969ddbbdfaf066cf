"""What people are told of the confinement: the truth, whatever the kernel can and the config says."""

from pathlib import Path

import pytest

from windlass.tools.bash import Bash
from windlass.tools.confinement import Confinement, confinement
from windlass.tools.files import WorkspaceRoot
from windlass.tools.jobs import Jobs
from windlass.wire.tools import ToolError

PATHS = ["/home/me/.local/share/windlass", "/home/me/.config/windlass"]


def judged(sandbox: str = "auto", version: int = 7, root: str = "/home/me/project") -> Confinement:
    return confinement(sandbox, PATHS, [4747], root, version)


def test_a_whole_confinement_is_said_and_fences_what_it_says() -> None:
    """A36: people would trust in a fence that is not there."""
    made = judged()
    assert made.is_whole and made.says.startswith("confined: it is kept from Windlass's own files and port")
    assert made.fence is not None and (made.fence.paths, made.fence.ports) == (tuple(PATHS), (4747,))


@pytest.mark.parametrize(
    ("version", "still"),
    [
        (2, "can cut Windlass's files short and can connect to Windlass's port and can signal any program of the user"),
        (3, "can connect to Windlass's port and can signal any program of the user"),
        (4, "can signal any program of the user"),
        (5, "can signal any program of the user"),
    ],
)
def test_an_older_kernel_confines_less_and_that_is_said(version: int, still: str) -> None:
    """A36: "confined" would mean less than people know it to mean."""
    made = judged(version=version)
    assert made.fence is not None and not made.is_whole
    assert f"partly confined: it is kept from Windlass's own files, but {still}, and else" in made.says


@pytest.mark.parametrize(
    ("sandbox", "version", "root", "reason"),
    [
        ("auto", 0, "/home/me/project", "no Landlock"),
        ("auto", 1, "/home/me/project", "no Landlock"),
        ("off", 7, "/home/me/project", 'sandbox = "off"'),
        ("auto", 7, "/home/me", "one inside the other"),
        ("auto", 7, "/home/me/.config/windlass/roles", "one inside the other"),
    ],
)
def test_what_cannot_be_confined_is_called_unconfined(sandbox: str, version: int, root: str, reason: str) -> None:
    """A36: a silent downgrade."""
    made = judged(sandbox, version, root)
    assert (made.fence, made.is_whole, made.refusal) == (None, False, "")
    assert made.says.startswith("unconfined (") and reason in made.says


@pytest.mark.parametrize(("version", "root"), [(0, "/p"), (1, "/p"), (5, "/p"), (7, "/home")])
def test_require_refuses_what_is_not_whole(version: int, root: str, workspace: Path) -> None:
    """A36: whoever wrote "require" would have commands run without it."""
    made = judged("require", version, root)
    assert made.fence is None and 'sandbox = "require"' in made.refusal
    held = WorkspaceRoot(str(workspace))
    try:
        bash = Bash(held, Jobs(None).view("ses", "run"), {}, made)  # type: ignore[arg-type]
        with pytest.raises(ToolError, match="Commands are not run here"):
            bash.plan({"command": "true"}, "call")
    finally:
        held.close()


def test_require_is_content_with_a_whole_one() -> None:
    """It would refuse everything, everywhere."""
    made = judged("require")
    assert made.is_whole and not made.refusal


def test_with_nothing_to_protect_nothing_is_called_confined() -> None:
    """A fence around nothing would be announced as one."""
    assert not confinement("auto", [], [], "/p", 7).is_whole
