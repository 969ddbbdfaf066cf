"""Which tests may kill the mutants of a file: the nearest ones first, because the first that fails ends the search.

Tests that take a safeguard out on purpose are left out: they test other tests.
"""

from pathlib import Path

ROOMS = ("windlass/core", "windlass/journal")
SEEDS = range(20)  # of the simulation, for what only many clients, crashes and restarts together can show
NOT_COUNTED = "not missing_safeguard"
TEST_SECONDS = 30  # of one test of the journal; it needs less than one, and one that hangs is one that fails
SEARCH_SECONDS = 90  # of one exhaustive search; nothing in it can wait, and it may share its core

_REST = {"core": ("tests/engine",), "journal": ("tests/journal", "tests/engine")}
# What these do is all in their own tests: no other may be needed to notice a change.
_ALONE = {
    "backup",
    "command_patterns",
    "commands",
    "encoding",
    "inspection",
    "lock",
    "maintenance",
    "migrations",
    "policy",
    "programs",
    "simple_command",
}
_ALONE |= {"rebuild", "tail", "writer"}
_NEAREST = {
    "core/answers": ("tests/core/test_answers.py",),
    "core/command_patterns": ("tests/core/test_command_patterns.py",),
    "core/commands": (
        "tests/core/test_readings.py",
        "tests/core/test_commands.py",
        "tests/core/test_command_patterns.py",
    ),
    "core/simple_command": ("tests/core/test_commands.py", "tests/core/test_command_patterns.py"),
    "core/programs": ("tests/core/test_programs.py", "tests/core/test_command_patterns.py"),
    "core/claims": ("tests/core/test_claims.py", "tests/core/test_claims_exhaustive.py"),
    "core/families": ("tests/core/test_families.py",),
    "core/lane": (
        "tests/core/test_lane.py",
        "tests/core/test_lane_told.py",
        "tests/core/test_lane_exhaustive.py",
        "tests/core/test_lane_machine.py",
    ),
    "core/permissions": ("tests/core/test_permissions.py", "tests/core/test_permissions_exhaustive.py"),
    "core/policy": (
        "tests/core/test_policy.py",
        "tests/core/test_command_patterns.py",
        "tests/core/test_permissions.py",
    ),
    "core/questions": ("tests/core/test_questions_exhaustive.py",),
    "journal/backup": ("tests/journal/test_backup.py",),
    "journal/encoding": ("tests/journal/test_encoding.py",),
    "journal/file_history": ("tests/journal/test_file_history.py",),
    "journal/inspection": ("tests/journal/test_inspection.py", "tests/cli/test_cli_doctor.py"),
    "journal/journal": ("tests/journal/test_journal.py", "tests/journal/test_poison.py"),
    "journal/live": ("tests/journal/test_live.py", "tests/journal/test_log.py"),
    "journal/lock": ("tests/journal/test_lock.py",),
    "journal/log": ("tests/journal/test_log.py", "tests/journal/test_log_state.py", "tests/journal/test_reader.py"),
    "journal/maintenance": ("tests/journal/test_maintenance.py", "tests/journal/test_restore.py"),
    "journal/migrations": ("tests/journal/test_sqlite.py",),
    "journal/past": ("tests/journal/test_past.py",),
    "journal/reader": ("tests/journal/test_reader.py", "tests/journal/test_reader_bounds.py"),
    "journal/rebuild": ("tests/journal/test_rebuild.py", "tests/journal/test_maintenance.py"),
    "journal/search": ("tests/journal/test_search.py",),
    "journal/sqlite": ("tests/journal/test_sqlite.py", "tests/journal/test_trim.py"),
    "journal/tail": ("tests/journal/test_tail.py", "tests/journal/test_reader.py"),
    "journal/view": ("tests/journal/test_view.py", "tests/journal/test_view_runs.py"),
    "journal/writer": ("tests/journal/test_writer.py",),
}


def files(root: Path) -> list[str]:
    """The modules of both rooms."""
    found = (path for room in ROOMS for path in sorted((root / room).glob("*.py")))
    return [str(path.relative_to(root)) for path in found if path.name != "__init__.py"]


def stages(root: Path, file: str) -> list[list[str]]:
    """The nearest tests, then the rest: what the first stage kills need not wait until the second is collected."""
    room, _, name = file.removeprefix("windlass/").removesuffix(".py").partition("/")
    nearest, rest = _NEAREST.get(f"{room}/{name}", ()), _REST[room]
    found = ([path for path in paths if (root / path).exists()] for paths in (nearest, rest))
    return [paths for paths in found if paths][: 1 if name in _ALONE else 2]


def seeds(file: str) -> range:
    return range(0) if Path(file).stem in _ALONE else SEEDS
