"""What a model has read, for tests that begin after it has."""

from windlass import limits
from windlass.tools.files import WorkspaceRoot
from windlass.tools.read_files import ReadFiles


def having_read(root: WorkspaceRoot, *paths: str) -> ReadFiles:
    """Files that are there now and were viewed; those that are not are left out."""
    known = ReadFiles()
    for path in paths:
        content = root.read_if_exists(path, limits.FILE_READ_BYTES)
        if content is not None:
            known.note(path, content)
    return known
