"""What holds for every test: it leaves nothing behind, shows no key, and our code in it never blocks an event loop.

`--shuffle SEED` runs them in another order: none may need what an earlier one left.
"""

import asyncio
import gc
import os
import random
import signal
import time
from collections.abc import Callable, Generator, Iterator

import pytest
import uvloop

from tests.leaks import Belongings, Pending, left_after
from windlass.testing import blocking, canary
from windlass.testing.server_process import ServerProcess
from windlass.testing.stem import Stem

_left_on_loop = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in the order that this seed gives")
    parser.addoption(
        "--page",
        choices=("all", "sample"),
        default="all",
        help="how many of the tests of the page: a browser computes a fifth of what all other tests do",
    )
    parser.addoption(
        "--no-programs", action="store_true", help="these tests start no program of ours: load none for them"
    )


@pytest.hookimpl(optionalhook=True)  # mutants are tried without that plug-in
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: a test often waits for a server or a browser that computes beside it."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected and imported stays for good: looking for rubbish among it again and again is a sixth of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every worker is given the same seed, so all agree on the order, as xdist needs it."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    # Modules stay whole: some have a server of their own, which would be started again for every test.
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    dice = random.Random(seed)
    order = list(modules.values())
    dice.shuffle(order)
    for module in order:
        dice.shuffle(module)
    items[:] = [item for module in order for item in module]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--shuffle") is not None:
        # Both: of other tests the same seed makes another order.
        chosen = f"--page {config.getoption('--page')} --shuffle {config.getoption('--shuffle')}"
        terminalreporter.write_line(f"again in this order: {chosen}")


def pytest_sessionstart(session: pytest.Session) -> None:
    # Made once a process and kept: else the first test on uvloop would have left its pipe for signals.
    uvloop.new_event_loop().close()
    # A shell that runs us in the background has it ignored, and what we start would ignore it as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    blocking.forbid()
    ServerProcess.program = "windlass.testing.watched_program"
    # xdist's own process only hands tests out.
    if not session.config.pluginmanager.hasplugin("dsession") and not session.config.getoption("--no-programs"):
        ServerProcess.stem = Stem("windlass.testing.watched_server")


def pytest_sessionfinish() -> None:
    if ServerProcess.stem is not None:
        ServerProcess.stem.close()
        ServerProcess.stem = None


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a task, a timer, a thread, a socket, a file descriptor or a child process."""
    # A loop that several tests share is made before the first look; a loop of the test's own is closed by the last.
    runner = _runner(request) if _loop_scope(request) not in ("", "function") else None
    loop = runner.get_loop() if runner is not None else None
    before = Belongings.now(loop)
    yield
    left = request.node.stash.get(_left_on_loop, [])
    left += left_after(lambda: Belongings.now(loop).since(before), _waiting_on(runner))
    if left:
        pytest.fail("the test left behind:\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def blocks_no_loop() -> Iterator[None]:
    """Fails a test in which our code blocked an event loop, also if the exception that this raised was swallowed."""
    blocking.found.clear()
    yield
    assert blocking.found == []


@pytest.fixture(autouse=True)
def shows_no_key() -> Iterator[None]:
    """Fails a test in which a key was on the event stream (A39)."""
    canary.found.clear()
    yield
    assert canary.found == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that printed or logged a key (A39); what its own processes said is searched where it is read."""
    report = yield
    shown = [f"{title}: {text}" for title, text in report.sections if canary.MARK in text]
    if report.when == "teardown" and report.passed and shown:
        report.outcome = "failed"
        report.longrepr = f"a key was shown in the {shown[0]}"
    return report


@pytest.fixture(autouse=True)
def leaves_nothing_on_its_loop(request: pytest.FixtureRequest, leaves_nothing_behind: None) -> Iterator[None]:
    """Looks at the test's loop while it is still open: closing it cancels silently what is left on it."""
    runner = _runner(request) if _loop_scope(request) else None
    before = Pending.on(runner)
    yield
    request.node.stash[_left_on_loop] = left_after(lambda: Pending.on(runner).since(before), _waiting_on(runner))


def _loop_scope(request: pytest.FixtureRequest) -> str:
    """How long the loop lives that this test runs on, "" if it needs none."""
    scope: str = getattr(request.node, "_loop_scope", "")
    return scope


def _runner(request: pytest.FixtureRequest) -> asyncio.Runner:
    runner: asyncio.Runner = request.getfixturevalue(f"_{_loop_scope(request)}_scoped_runner")
    return runner


def _waiting_on(runner: asyncio.Runner | None) -> Callable[[float], object]:
    """What is closing on a loop closes only while the loop runs."""
    return time.sleep if runner is None else lambda seconds: runner.run(asyncio.sleep(seconds))
