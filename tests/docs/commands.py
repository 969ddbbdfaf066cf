"""The commands of a shell block, one after the other: a line, with those that belong to it."""

import subprocess
from collections.abc import Iterator


def commands(text: str) -> Iterator[str]:
    """Each whole command. Lines of a comment alone, and empty ones, are none."""
    waiting: list[str] = []
    for line in text.splitlines():
        if not waiting and (not line.strip() or line.lstrip().startswith("#")):
            continue
        waiting.append(line)
        if _is_whole("\n".join(waiting)):
            yield "\n".join(waiting)
            waiting = []
    assert not waiting, f"the last command of the block has no end: {waiting}"


def _is_whole(command: str) -> bool:
    """Whether the shell would not wait for another line."""
    if command.endswith("\\"):
        return False
    if "<<" not in command and not any(mark in command for mark in "'\"({|&") and "\n" not in command:
        return not command.startswith(("for ", "while ", "if "))
    read = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
    return read.returncode == 0 and "here-document" not in read.stderr
