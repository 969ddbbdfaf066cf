"""`windlass serve`: its options. What a server is made of is `windlass.app`."""

import sys
from pathlib import Path

import click

from windlass import config, limits
from windlass.cli.loading import load
from windlass.cli.options import Seconds, data_dir_option

_FILE = click.Path(path_type=Path)
_SECONDS = Seconds()


@click.command()
@click.option(
    "--listen",
    multiple=True,
    metavar="ADDRESS",
    default=["127.0.0.1:4747"],
    show_default=True,
    help="HOST:PORT (port 0: a free one) or unix:PATH. May be given several times.",
)
@click.option("--allow-host", multiple=True, metavar="NAME", help="Another Host name clients may use.")
@click.option("--tls-cert", type=_FILE, help="A certificate chain (PEM), to serve HTTPS.")
@click.option("--tls-key", type=_FILE, help="Its private key.")
@data_dir_option
@click.option("--config", "config_file", type=_FILE, help="The config file. [default: config.toml in your config home]")
@click.option("--ready-file", type=_FILE, help="Write url, token and pid here when connections are accepted.")
@click.option("--exit-when-idle", is_flag=True, help="Leave when the last client has left.")
@click.option(
    "--create-grace",
    type=_SECONDS,
    default=limits.CREATE_GRACE_SECONDS,
    show_default=True,
    help="Seconds a workspace stays open for its creator's first stream.",
)
@click.option(
    "--detach-grace",
    type=_SECONDS,
    default=limits.DETACH_GRACE_SECONDS,
    show_default=True,
    help="Seconds it stays open for a client whose stream dropped.",
)
@click.option(
    "--linger",
    type=_SECONDS,
    default=limits.LINGER_SECONDS,
    show_default=True,
    help="Seconds an --exit-when-idle server waits after the last client.",
)
@click.option(
    "--drain",
    type=_SECONDS,
    default=limits.DRAIN_SECONDS,
    show_default=True,
    help="Seconds running work is given when the server is told to stop.",
)
def serve(
    listen: tuple[str, ...],
    allow_host: tuple[str, ...],
    tls_cert: Path | None,
    tls_key: Path | None,
    data_dir: Path | None,
    config_file: Path | None,
    ready_file: Path | None,
    exit_when_idle: bool,
    create_grace: float,
    detach_grace: float,
    linger: float,
    drain: float,
) -> None:
    """Run the server until it is told to stop (Ctrl-C or SIGTERM).

    Without options it listens on this machine only and keeps its data in your data home, where client commands find
    its address. A first start makes the first token.

    \b
    Examples:
      windlass serve
      windlass serve --listen 127.0.0.1:0 --ready-file ready.json --exit-when-idle
    """
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together.", click.get_current_context())
    app = load("windlass.app")
    options = app.ServeOptions(
        listen=list(listen),
        allow_host=list(allow_host),
        tls_cert=None if tls_cert is None else str(tls_cert),
        tls_key=None if tls_key is None else str(tls_key),
        data_dir=data_dir,
        config=config_file,
        ready_file=ready_file,
        exit_when_idle=exit_when_idle,
        create_grace=create_grace,
        detach_grace=detach_grace,
        linger=linger,
        drain=drain,
    )
    try:
        sys.exit(app.serve(options))
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from error
