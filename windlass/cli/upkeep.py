"""`windlass backup`, also while a server runs; `prune`, `rebuild` and `restore`, while none does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from windlass import config, limits
from windlass.cli.connection import refusals_on_one_line
from windlass.cli.options import data_dir_option
from windlass.cli.progress import working
from windlass.cli.safe_text import exact
from windlass.cli.terminal import Terminal


@click.command()
@data_dir_option
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The config file with the bounds.")
@click.option("--days", type=click.FloatRange(min=0), help="Keep facts younger than this. [default: the config's]")
@click.option("--mb", type=click.IntRange(min=0), help="Keep at most this much per workspace. [default: the config's]")
def prune(data_dir: Path | None, config_file: Path | None, days: float | None, mb: int | None) -> None:
    """Trim the log now and give the space back. Conversations stay; only the stream's memory gets shorter.

    \b
    Example:
      windlass prune --days 7
    """
    from windlass.journal import maintenance

    with _journal(data_dir) as path, working("Trimming"):
        rules = config.load(config_file).journal
        kept_days = rules.retention_days if days is None else days
        kept_bytes = (rules.retention_mb if mb is None else mb) * limits.MIB
        before, after = maintenance.prune(path, kept_days, kept_bytes)
    Terminal().line(f"{before // limits.KIB} KiB before, {after // limits.KIB} KiB now.")


@click.command()
@data_dir_option
@click.option("--check", is_flag=True, help="Only say whether the tables hold what the log says.")
def rebuild(data_dir: Path | None, check: bool) -> None:
    """Build the tables anew from the log, or check that they agree with it.

    \b
    Example:
      windlass rebuild --check
    """
    from windlass.journal import maintenance

    with _journal(data_dir) as path, working("Checking") as progress:
        if not check:
            progress.what = "Building the tables anew"
            maintenance.rebuild_tables(path)
            progress.what = "Checking"
        differences = maintenance.check(path)
    for difference in differences:
        Terminal().line(exact(difference))
    if differences:
        raise SystemExit(1)
    Terminal().line("The tables hold what the log says.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@data_dir_option
def backup(file: Path, data_dir: Path | None) -> None:
    """Copy the journal to FILE, a new file, also while the server runs.

    FILE then holds every conversation and everything acknowledged so far. Tokens, keys and the config are not in it.

    \b
    Examples:
      windlass backup journal-2026-11-01.db
      windlass backup "$HOME/backups/windlass-$(date +%F).db"
    """
    from windlass.journal.backup import backup as copy

    path = (data_dir or config.default_data_dir()) / "journal.db"
    with refusals_on_one_line(), working("Copying"):
        size = copy(path, file)
    name = exact(str(file))
    Terminal().line(f"{name} has it all: {size // limits.KIB} KiB. `windlass restore {name}` puts it back.")


@click.command()
@click.argument("backup", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@data_dir_option
def restore(backup: Path, data_dir: Path | None) -> None:
    """Put BACKUP (of `windlass backup`) in the journal's place. Clients are told to reload: every log is a new one.

    \b
    Example:
      windlass restore journal-2026-11-01.db
    """
    from windlass.journal import maintenance

    with _journal(data_dir) as path, working("Restoring"):
        count = maintenance.restore(path, backup)
    Terminal().line(f"Restored {count} workspace{'' if count == 1 else 's'}. Start the server with: windlass serve")


@contextmanager
def _journal(data_dir: Path | None) -> Iterator[Path]:
    """The journal's file, with the data directory to ourselves."""
    from windlass.journal.lock import only_writer

    directory = data_dir or config.default_data_dir()
    if not directory.is_dir():
        raise click.ClickException(f"There is no data directory at {directory}. Name it with --data-dir.")
    try:
        with refusals_on_one_line(), only_writer(directory):
            yield directory / "journal.db"
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from error
