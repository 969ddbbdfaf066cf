"""The pages of the documentation, and the fenced blocks in them, with what is said about each."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LANGUAGES = ("sh", "python", "toml", "json", "jsonl", "text", "ini", "nginx", "dockerfile", "yaml")
_FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_REMARK = re.compile(r"<!-- (not run|tested by|type): ([^\n]+) -->\n\Z")


@dataclass(frozen=True)
class Block:
    """One fenced block. At most one remark stands on the line above it: `not run`, `tested by` or `type`."""

    page: str
    line: int
    language: str
    file: str  # what it is saved as, if its first line says so
    body: str
    remark: str
    said: str  # behind the remark
    follows: str  # the language of the block before it on its page

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_output(self) -> bool:
        """Whether it shows what the commands before it print."""
        return self.language == "text" and self.follows in ("sh", "python") and not self.remark


@cache
def pages() -> dict[str, str]:
    """Every page by its name, which is its path below the root."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}


@cache
def blocks(page: str) -> tuple[Block, ...]:
    """The blocks of a page, in order."""
    return parsed(page, pages()[page])


def parsed(page: str, text: str) -> tuple[Block, ...]:
    found: list[Block] = []
    for match in _FENCE.finditer(text):
        before = text[: match.start()]
        remark = _REMARK.search(before)
        language, _, file = match["info"].strip().partition(" ")
        indent = len(match["indent"])
        body = "".join(line[indent:] if line.strip() else line for line in match["body"].splitlines(keepends=True))
        found.append(
            Block(
                page=page,
                line=before.count("\n") + 1,
                language=language,
                file=file.strip(),
                body=body,
                remark=remark[1] if remark else "",
                said=remark[2] if remark else "",
                follows=found[-1].language if found and found[-1].remark != "not run" else "",
            )
        )
    return tuple(found)


def every_block() -> list[Block]:
    return [block for page in pages() for block in blocks(page)]
