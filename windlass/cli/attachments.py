"""Files sent along with a prompt: pictures and text, looked at before anything is sent."""

import base64
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import click

from windlass import limits
from windlass.client import Attachment


def read_attachments(paths: Sequence[Path]) -> list[Attachment]:
    """The files as they are sent. Raises UsageError, naming the file, for what no model could be shown."""
    if len(paths) > limits.ATTACHED_FILES:
        raise _usage(f"{len(paths)} files are too many to attach; at most {limits.ATTACHED_FILES}.")
    attachments, left = [], limits.ATTACHED_BYTES
    for path in paths:
        content = _read(path, left)
        left -= len(content)
        encoded = base64.b64encode(content).decode("ascii")
        attachments.append(Attachment(str(path.absolute()), path.name, _type(path, content), encoded))
    return attachments


def _read(path: Path, left: int) -> bytes:
    try:
        # Non-blocking: opening a FIFO of that name would otherwise wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise _usage(f"{path} cannot be read: {error.strerror}.") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _usage(f"{path} is not a regular file.")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(left + 1)
    finally:
        os.close(descriptor)
    if len(content) > left:
        most = limits.ATTACHED_BYTES // limits.MIB
        raise _usage(f"With {path} more than {most} MiB are attached. Name large files in the prompt instead.")
    return content


def _type(path: Path, content: bytes) -> str:
    from windlass.tools.magic import other_type, picture_type  # only here: most runs attach nothing

    if picture := picture_type(content):
        return picture
    try:
        if "\0" not in content.decode():
            return "text/plain"
    except UnicodeDecodeError:
        pass
    raise _usage(f"{path} is neither text nor a picture (PNG, JPEG, GIF, WebP): {other_type(content)}.")


def _usage(message: str) -> click.UsageError:
    return click.UsageError(message, click.get_current_context(silent=True))
