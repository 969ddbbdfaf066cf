"""What came of each mutant, kept in a file, so that a long run can be stopped and go on."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.mutation.operators import Mutant

SURVIVED = ""


class Verdicts:
    """By whom each mutant was killed; "" for one that survived. A result counts only for the source it was made of."""

    def __init__(self, path: Path, sources: Mapping[str, str]) -> None:
        self._path = path
        self._digests = {file: hashlib.sha256(source.encode()).hexdigest()[:16] for file, source in sources.items()}
        self._killers: dict[str, str] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                entry = json.loads(line)
                if self._digests.get(entry["file"]) == entry["source"]:
                    self._killers[entry["mutant"]] = entry["killer"]

    def is_open(self, mutant: Mutant, again: bool = False) -> bool:
        killer = self._killers.get(mutant.name)
        return killer == SURVIVED if again else killer is None

    def add(self, mutant: Mutant, killer: str) -> None:
        self._killers[mutant.name] = killer
        entry = {
            "file": mutant.file,
            "source": self._digests[mutant.file],
            "mutant": mutant.name,
            "killer": killer,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def score(self, mutants: Iterable[Mutant]) -> float:
        tried = [mutant for mutant in mutants if mutant.name in self._killers]
        killed = sum(1 for mutant in tried if self._killers[mutant.name])
        return killed / len(tried) if tried else 0.0

    def report(self, mutants: Iterable[Mutant]) -> str:
        """A row for each file, and the survivors."""
        mutants = list(mutants)
        tried = Counter(m.file for m in mutants if m.name in self._killers)
        killed = Counter(m.file for m in mutants if self._killers.get(m.name))
        lines = [f"survived: {m.name}" for m in mutants if self._killers.get(m.name) == SURVIVED]
        lines += ["", "| file | mutants | killed | score |", "|---|---|---|---|"]
        for file, count in sorted(tried.items()):
            lines.append(f"| `{file}` | {count} | {killed[file]} | {killed[file] / count:.0%} |")
        total = f"| all | {tried.total()} | {killed.total()} | {self.score(mutants):.1%} |"
        return "\n".join([*lines, total])
