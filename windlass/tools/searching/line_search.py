"""Finding lines in files: what `grep` asks the searching process for. Line by line, by Python's `re`."""

import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

from windlass import limits
from windlass.tools.searching.file_search import SearchRefused, glob_of, incomplete
from windlass.tools.searching.orphan import end_with_parent
from windlass.tools.searching.prefilter import ripgrep_pattern
from windlass.tools.searching.ripgrep import Ripgrep, find_ripgrep
from windlass.tools.searching.search_report import SearchReport
from windlass.tools.searching.walk import File, Walk, read_file
from windlass.tools.text import shown


def find_lines(root: int, request: dict[str, Any]) -> dict[str, Any]:
    """Answers with text for a model, and figures: the same with ripgrep and without it."""
    pattern = _compiled(request)
    walk = Walk(root, request["path"])
    report = SearchReport(request["output"], request["limit"], request["context"])
    unsearched = 0
    for file, worth in _candidates(walk, request, pattern):
        if report.full:
            break
        if file.size > limits.FILE_READ_BYTES:
            unsearched += 1
        elif worth:
            content = read_file(root, file.path, limits.FILE_READ_BYTES)
            if content is not None and b"\0" not in content:
                report.add(shown(file.path), _lines(content), pattern)
    text = report.text()
    if unsearched:
        text += f"\n[{unsearched} files over {limits.FILE_READ_BYTES} bytes were not searched]"
    return {"text": text + incomplete(walk), "metadata": report.figures()}


def _compiled(request: dict[str, Any]) -> re.Pattern[str]:
    pattern = re.escape(request["pattern"]) if request["literal"] else request["pattern"]
    try:
        with warnings.catch_warnings():
            # What another dialect would read as a set of sets, as in [[:alpha:]], would silently mean something else.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(pattern, re.IGNORECASE if request["case_insensitive"] else 0)
    except FutureWarning:
        raise SearchRefused(
            "The pattern has a `[` or `--`, `&&`, `~~`, `||` within a set `[...]`. Sets of sets and [:names:] are not "
            "possible; put a backslash before the character if it is meant as one."
        ) from None
    except (re.error, OverflowError) as error:
        raise SearchRefused(
            f"The pattern is not valid: {error}. The syntax is that of Python's `re`; set `literal` to search for the "
            "text as it is."
        ) from None
    except RecursionError:
        raise SearchRefused("The pattern is nested too deeply.") from None


def _candidates(walk: Walk, request: dict[str, Any], pattern: re.Pattern[str]) -> Iterator[tuple[File, bool]]:
    """The files to search, in order; with ripgrep, also whether it found something in them."""
    wider = ripgrep_pattern(pattern.pattern, pattern.flags & ~re.UNICODE)
    program = find_ripgrep(os.environ, request["workspace"]) if wider is not None else ""
    files = _included(walk, request["path"], request["include"])
    if not program or wider is None:
        return ((file, True) for file in files)
    return Ripgrep(program, wider, end_with_parent).worth_searching(files)


def _included(walk: Walk, start: str, include: str) -> Iterator[File]:
    if not include:
        return iter(walk)
    wanted = glob_of(include)
    prefix = f"{start}/" if start else ""
    return (file for file in walk if wanted.matches(file.path.removeprefix(prefix)))


def _lines(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
