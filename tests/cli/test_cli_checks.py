"""What `windlass doctor` says of the confinement of commands."""

from pathlib import Path

import pytest

from windlass.cli.checks import check_landlock
from windlass.tools import confinement


@pytest.mark.parametrize(
    ("sandbox", "version", "level", "says"),
    [
        ("auto", 7, "OK", "commands are confined"),
        ("require", 6, "OK", "commands are confined"),
        ("auto", 4, "WARN", "partly confined. A command can signal"),
        ("auto", 1, "WARN", "commands run unconfined"),
        ("auto", 0, "WARN", "commands run unconfined"),
        ("off", 7, "WARN", "commands run unconfined"),
        ("require", 4, "FAIL", "no command is run"),
        ("require", 0, "FAIL", "no command is run"),
    ],
)
def test_the_doctor_says_whether_commands_are_confined(
    sandbox: str, version: int, level: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A36: people would find out from a command that read their token."""
    monkeypatch.setattr(confinement, "landlock_version", lambda: version)
    file = tmp_path / "config.toml"
    file.write_text(f'[bash]\nsandbox = "{sandbox}"\n')
    finding = check_landlock(file)
    assert finding.level == level and says in finding.says
