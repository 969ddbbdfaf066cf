"""Mutants inside SQL: a query is code, and a broken one that still parses is the kind nobody notices."""

import re
from collections.abc import Iterator

_CHANGES = (
    (r"(?<![<>])=", "<>"),
    (r"<=", "<"),
    (r">=", ">"),
    (r"<(?![=>])", "<="),
    (r"(?<![<-])>(?!=)", ">="),
    (r"\bAND\b", "OR"),
    (r"\bOR\b(?! REPLACE)", "AND"),
    (r" OR REPLACE\b", ""),
    (r"\bNOT IN\b", "IN"),
    (r"\bDESC\b", "ASC"),
    (r" ORDER BY [\w., ]+?(?= LIMIT|\)|$)", ""),
    (r" LIMIT \?", " LIMIT ? + 1"),
    (r"\bDISTINCT ", ""),
    (r"\bmax\(", "min("),
    (r"\bLEFT JOIN\b", "JOIN"),
    (r"\bIMMEDIATE\b", ""),
    (r"\bTRUNCATE\b", "PASSIVE"),
    (r"= (ON|WAL|FULL)\b", "= OFF"),
    (r"\+ 1\b", "+ 2"),
    (r", 0\)", ", 1)"),
    (r"'([a-z]+)'", r"'XX\1'"),
    (r"\bCOMMIT\b", "ROLLBACK"),
)
_IS_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|PRAGMA|ORDER BY|BEGIN|WHERE|FROM|AND|COMMIT)\b")
_SETTING = re.compile(r"\b(SET|PRAGMA) \w+ $")  # there `=` is no comparison


def sql_mutants(text: str) -> Iterator[tuple[str, str]]:
    """What was changed, and the text with that one change; nothing for a text that is no SQL."""
    if not _IS_SQL.search(text):
        return
    for pattern, replacement in _CHANGES:
        for found in re.finditer(pattern, text):
            if found[0] == "=" and _SETTING.search(text[: found.start()]):
                continue
            changed = found.expand(replacement)
            around = text[max(0, found.start() - 25) : found.start()].strip()
            yield (
                f"...{around} {found[0].strip()} -> {changed.strip()}",
                text[: found.start()] + changed + text[found.end() :],
            )
