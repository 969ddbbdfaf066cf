"""One mutant on trial, in a process of its own: imported instead of the real module, until a test or a seed fails.

The process is forked from one that has imported everything but Windlass, so that a trial begins at once. Nothing is
written into the tree.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import sys
import types
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn

import hypothesis
import pytest
import pytest_asyncio.plugin
import pytest_timeout  # type: ignore[import-untyped]

from tests.mutation.plan import NOT_COUNTED, SEARCH_SECONDS, TEST_SECONDS

_MEMORY_BYTES = 4 << 30  # a loop that should have ended must not take the machine with it


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the mutated module under the real one's name."""

    def __init__(self, origin: str, name: str, tree: ast.Module) -> None:
        self._name = name
        self._origin = origin
        self._code = compile(tree, origin, "exec")

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=self._origin)

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self._code, module.__dict__)


class _FirstFailure:
    """A pytest plugin that ends the trial at once: to take down what a mutant has broken may last for ever."""

    def __init__(self, answer: Connection) -> None:
        self._answer = answer

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            _end(self._answer, report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            _end(self._answer, report.nodeid)


def _end(answer: Connection, killer: str) -> NoReturn:
    answer.send(killer)
    answer.close()
    os._exit(0)  # threads of a broken journal must not keep the process


class Trial(NamedTuple):
    """What is tried: the tests in their stages, the seeds after them, and the CPU time all of it may take."""

    tests: Sequence[Sequence[str]]
    seeds: range
    seconds: int
    instead: Instead | None = None


def try_mutant(trial: Trial, answer: Connection) -> None:
    """Send the name of the first test or seed that fails, "" when none does."""
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (trial.seconds, trial.seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if trial.instead is not None:
        sys.meta_path.insert(0, trial.instead)
    _end(answer, _killer(trial, answer))


def _killer(trial: Trial, answer: Connection) -> str:
    # The same examples every time, and no effort to make a failing one pretty.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", database=None, derandomize=True, phases=phases)
    hypothesis.settings.load_profile("mutants")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for tests in trial.tests:
        if problem := _run_tests(tests, answer):
            return problem
    return _first_failing_seed(trial.seeds)


def _run_tests(tests: Sequence[str], answer: Connection) -> str:
    seconds = TEST_SECONDS if "tests/journal" in tests[0] else SEARCH_SECONDS
    options = ["-x", "-p", "no:cacheprovider", "--tb=no", f"--timeout={seconds}", "-k", NOT_COUNTED]
    code = pytest.main([*options, *tests], plugins=[pytest_asyncio.plugin, pytest_timeout, _FirstFailure(answer)])
    return "" if code == pytest.ExitCode.OK else f"pytest left with {code}"


def _first_failing_seed(seeds: range) -> str:
    try:
        from windlass.testing.simulation import run_seed
    except Exception as problem:
        return f"the simulation cannot be imported: {problem!r}"
    for seed in seeds:
        try:
            failed = run_seed(seed).failed
        except Exception:
            failed = True
        if failed:
            return f"seed {seed}"
    return ""
