"""The files of the page, in memory: a request names one of a fixed table, and never reaches the file system."""

import gzip
import hashlib
import os
from pathlib import Path

import msgspec

from windlass import limits

PAGE_DIRECTORY = Path(__file__).parent.parent / "page"
_KINDS = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
}
_PACKED = frozenset({".html", ".css", ".js", ".svg", ".webmanifest"})


class PageFile(msgspec.Struct, frozen=True):
    """`packed` is the same content compressed, b"" where that saves nothing. `stamp` tells whether the file changed."""

    kind: str
    content: bytes
    packed: bytes
    etag: str
    stamp: tuple[int, int]


class PageFiles:
    """What is in one flat folder. A file that was changed, added or removed is noticed with the next request."""

    def __init__(self, directory: Path = PAGE_DIRECTORY) -> None:
        self._directory = directory
        self._files: dict[str, PageFile] = {}

    def find(self, name: str) -> PageFile | None:
        """The file of this name; None when there is none. Reads the disk: call it in a thread.

        The name is only ever looked up in the table, so that no spelling of it is a path (A20).
        """
        # Two threads may do this at once: both end up with the same table.
        self._files = self._read(self._files)
        return self._files.get(name)

    def _read(self, known: dict[str, PageFile]) -> dict[str, PageFile]:
        files: dict[str, PageFile] = {}
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if Path(entry.name).suffix not in _KINDS or not entry.is_file():
                    continue
                status = entry.stat()
                stamp = (status.st_mtime_ns, status.st_size)
                before = known.get(entry.name)
                files[entry.name] = before if before and before.stamp == stamp else _load(Path(entry.path), stamp)
        return files


def _load(path: Path, stamp: tuple[int, int]) -> PageFile:
    content = path.read_bytes()
    packed = gzip.compress(content, mtime=0) if path.suffix in _PACKED else b""
    if len(packed) > len(content) * limits.PAGE_PACKED_SHARE:
        packed = b""
    # Weak: the same for the content and its compressed form.
    etag = f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'
    return PageFile(_KINDS[path.suffix], content, packed, etag, stamp)
