"""The files of the page, in memory: a request names one of a fixed table, and never reaches the file system."""

import gzip
import hashlib
import os
from pathlib import Path

import msgspec

from windlass import limits
from windlass.server.page_joined import joined

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


class Edition(msgspec.Struct, frozen=True):
    """All files as they were at one moment. `name` changes with any of them.

    `front` is index.html for this edition: it asks for files of this edition, and for the `joined` ones where it can. A
    browser keeps the files of an edition for good. It learns of the next one from the front page, which names it.
    """

    name: str
    front: PageFile
    joined: dict[str, PageFile]
    files: dict[str, PageFile]

    def find(self, name: str) -> PageFile | None:
        """The name is only ever looked up in a table, so that no spelling of it is a path (A20)."""
        return self.joined.get(name) or self.files.get(name)


class PageFiles:
    """What is in one flat folder. A file that was changed, added or removed is noticed with the next front page."""

    def __init__(self, directory: Path = PAGE_DIRECTORY) -> None:
        self._directory = directory
        self._edition: Edition | None = None

    def current(self) -> Edition:
        """The files as they are now. Reads the disk: call it in a thread."""
        known = self._edition.files if self._edition else {}
        files = self._read(known)
        # Two threads may do this at once: both end up with the same edition.
        if self._edition is None or files != known:
            self._edition = _edition(files)
        return self._edition

    def kept(self, edition: str) -> Edition | None:
        """The edition of this name if it is the one in memory: then nothing is read."""
        return self._edition if self._edition and self._edition.name == edition else None

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


def _edition(files: dict[str, PageFile]) -> Edition:
    index = files["index.html"]
    texts = {name: file.content.decode() for name, file in files.items() if name.endswith((".js", ".css"))}
    page, made = joined(index.content.decode(), texts)
    together = {name: _file(Path(name).suffix, text.encode(), index.stamp) for name, text in made.items()}
    stamps = "".join(f"{name} {file.etag}\n" for name, file in sorted({**files, **together}.items()))
    name = _digest((page + stamps).encode())
    front = page.replace('"/page/', f'"/page/{name}/')
    return Edition(name, _file(".html", front.encode(), index.stamp), together, files)


def _load(path: Path, stamp: tuple[int, int]) -> PageFile:
    return _file(path.suffix, path.read_bytes(), stamp)


def _file(suffix: str, content: bytes, stamp: tuple[int, int]) -> PageFile:
    packed = gzip.compress(content, mtime=0) if suffix in _PACKED else b""
    if len(packed) > len(content) * limits.PAGE_PACKED_SHARE:
        packed = b""
    # Weak: the same for the content and its compressed form.
    etag = f'W/"{_digest(content)}"'
    return PageFile(_KINDS[suffix], content, packed, etag, stamp)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
