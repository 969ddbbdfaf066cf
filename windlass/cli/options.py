"""Options that many commands share: which server, which directory, how to print."""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from windlass import config


class Seconds(click.FloatRange):
    """A number of seconds, from 0: not a number and without end are none."""

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return seconds


Function = Callable[..., Any]


class ServerOptions(msgspec.Struct, frozen=True):
    """Which server is meant, as the user said it; `windlass.cli.connection` finds it."""

    url: str | None = None
    token_file: Path | None = None
    data_dir: Path | None = None
    start: bool = True  # one, where none is running

    @property
    def data_directory(self) -> Path:
        return self.data_dir or config.default_data_dir()


def server_options(function: Function) -> Function:
    """--url, --token-file, --data-dir and --no-start, handed on as one `server`."""

    @click.option("--url", metavar="URL", help="The server: http://HOST:PORT or unix:/PATH. [env: WINDLASS_URL]")
    @click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        help="A file with the token, readable by you alone. [env: WINDLASS_TOKEN_FILE]",
    )
    @data_dir_option
    @click.option(
        "--no-start",
        is_flag=True,
        envvar="WINDLASS_NO_START",
        help="Do not start a server where none is running. [env: WINDLASS_NO_START=1]",
    )
    @functools.wraps(function)
    def command(url: str | None, token_file: Path | None, data_dir: Path | None, no_start: bool, **rest: Any) -> Any:
        return function(server=ServerOptions(url, token_file, data_dir, not no_start), **rest)

    return command


def data_dir_option(function: Function) -> Function:
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        help="Where the server keeps its data. [default: windlass in your data home]",
    )(function)


def directory_option(function: Function) -> Function:
    return click.option(
        "-C",
        "directory",
        type=click.Path(path_type=Path),
        default=Path(),
        help="The workspace's directory. [default: the current one]",
    )(function)


def json_option(function: Function) -> Function:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(function)


class ListingGroup(click.Group):
    """A group that means `list` when no command is named: `windlass sessions --json` lists as JSON."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        asks_for_help = bool(args) and args[0] in ctx.help_option_names
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)  # a shell completes the name of a command
        if not asks_for_help and (not args or args[0].startswith("-")):
            args = ["list", *args]
        return super().parse_args(ctx, args)
