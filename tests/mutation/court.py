"""Runs trials, a few at a time. A trial that hangs counts as killed: the suite would not have ended."""

import importlib
import multiprocessing
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import NamedTuple

import click

from tests.mutation.operators import Mutant, mutated
from tests.mutation.plan import SEEDS, seeds, stages
from tests.mutation.trial import Instead, Trial, try_mutant
from tests.mutation.verdicts import Verdicts

_WARM = ("hypothesis.stateful", "sqlite3", "windlass.testing.simulation")
_HONEST_SECONDS = 300
_PATIENCE = 2  # times what the unchanged code takes
_NO_ANSWER = "it never ended"

_fork = multiprocessing.get_context("fork")


class _Running(NamedTuple):
    mutant: Mutant
    process: ForkProcess
    answer: Connection
    until: float


class Court:
    def __init__(self, root: Path, sources: Mapping[str, str], verdicts: Verdicts, jobs: int) -> None:
        self._root = root
        self._sources = sources
        self._verdicts = verdicts
        self._jobs = jobs
        self._seconds = 0.0

    def hear(self, mutants: Sequence[Mutant]) -> None:
        _import_all_but_windlass()
        if mutants:
            self._seconds = 20 + _PATIENCE * self._honest_seconds()
        running: list[_Running] = []
        waiting = list(reversed(mutants))
        while waiting or running:
            while waiting and len(running) < self._jobs:
                running.append(self._begin(waiting.pop()))
            wait([trial.process.sentinel for trial in running], timeout=1.0)
            for trial in [trial for trial in running if not trial.process.is_alive() or time.monotonic() > trial.until]:
                running.remove(trial)
                self._end(trial)
                click.echo(f"\r{len(waiting) + len(running)} to go \x1b[K", nl=False, err=True)

    def _honest_seconds(self) -> float:
        """How long the tests take on the files as they are. They must pass, or killing would mean nothing."""
        began = time.monotonic()
        tests = sorted({test for file in self._sources for stage in stages(self._root, file) for test in stage})
        process, answer = _start(Trial([tests], SEEDS, _HONEST_SECONDS))
        process.join(_HONEST_SECONDS)
        failed = _received(answer)
        if failed:
            process.kill()
            raise click.ClickException(f"without any mutant there is a failure: {failed}")
        return time.monotonic() - began

    def _begin(self, mutant: Mutant) -> _Running:
        tree = mutated(self._sources[mutant.file], mutant)
        instead = Instead(str(self._root / mutant.file), mutant.module, tree)
        trial = Trial(stages(self._root, mutant.file), seeds(mutant.file), int(self._seconds), instead)
        process, answer = _start(trial)
        return _Running(mutant, process, answer, time.monotonic() + 2 * self._seconds)

    def _end(self, trial: _Running) -> None:
        trial.process.kill()
        trial.process.join()
        self._verdicts.add(trial.mutant, _received(trial.answer))
        trial.answer.close()


def _start(trial: Trial) -> tuple[ForkProcess, Connection]:
    mine, theirs = _fork.Pipe(duplex=False)
    process = _fork.Process(target=try_mutant, args=(trial, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, mine


def _received(answer: Connection) -> str:
    try:
        return str(answer.recv()) if answer.poll() else _NO_ANSWER
    except EOFError:
        return _NO_ANSWER  # it used up its time, or its memory


def _import_all_but_windlass() -> None:
    """What a trial imports anyway, and forgets what it must import itself."""
    for name in _WARM:
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "windlass"]:
        del sys.modules[name]
