"""The tools that look at files and change them, for one run: together, because they share what the model has read."""

from collections.abc import Sequence

from windlass.tools.edit import Edit
from windlass.tools.files import WorkspaceRoot
from windlass.tools.glob import Glob
from windlass.tools.grep import Grep
from windlass.tools.ls import Ls
from windlass.tools.multiedit import Multiedit
from windlass.tools.read_files import ReadFiles
from windlass.tools.view import View
from windlass.tools.write import Write
from windlass.wire.messages import Message
from windlass.wire.tools import Tool


def file_tools(root: WorkspaceRoot, messages: Sequence[Message], environment: dict[str, str]) -> list[Tool]:
    """`messages` is the conversation so far: what was read in it need not be read again, if it is still the same.

    `environment` is for the process that searches.
    """
    known = ReadFiles(messages)
    return [
        View(root, known),
        Ls(root),
        Glob(root, environment),
        Grep(root, environment),
        Edit(root, known),
        Multiedit(root, known),
        Write(root, known),
    ]
