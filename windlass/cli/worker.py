"""`windlass worker`: its options. What a worker is made of is `windlass.worker_app`."""

import sys
from pathlib import Path

import click

from windlass.cli.loading import load
from windlass.cli.options import Seconds

_FILE = click.Path(path_type=Path)
_SECONDS = Seconds()


@click.command()
@click.option(
    "--executor",
    metavar="NAME",
    help="echo, agent, or module:Class: any class with `async def run(self, spec, events, steer, cancel)`.",
)
@click.option(
    "--mode",
    type=click.Choice(["one", "reusable", "service"]),
    default="one",
    show_default=True,
    help="One connection; one after the other; or many at once, for ever.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    help="Port 0: a free one. Other machines can reach a worker only with TLS.",
)
@click.option(
    "--accept-timeout", type=_SECONDS, metavar="S", help="Mode one: give up, exit 1, when nobody came in time."
)
@click.option("--idle-timeout", type=_SECONDS, metavar="S", help="Mode reusable: exit 0 after this long without a run.")
@click.option("--ready-file", type=_FILE, help="Write url, token and pid here once connections are accepted.")
@click.option("--spec-stdin", is_flag=True, help="Read one JSON document from standard input: secret, executor ...")
@click.option("--tls-cert", type=_FILE, help="A certificate chain (PEM), to serve wss.")
@click.option("--tls-key", type=_FILE, help="Its private key.")
def worker(
    executor: str | None,
    mode: str,
    listen: str,
    accept_timeout: float | None,
    idle_timeout: float | None,
    ready_file: Path | None,
    spec_stdin: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Serve an executor over a WebSocket: a parent connects, assigns runs, and hears how they go.

    The address is printed (or written to --ready-file) once connections are accepted. Its path is the worker's secret:
    who knows it may assign work. Keep it out of logs and command lines.

    \b
    Examples:
      windlass worker --executor echo --mode one
      windlass worker --executor my_module:MyExecutor --mode service --ready-file worker.json
      windlass worker --executor agent --mode reusable --idle-timeout 60
    """
    context = click.get_current_context()
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together.", context)
    if executor is None and not spec_stdin:
        raise click.UsageError("--executor is missing: echo, agent, or module:Class.", context)
    app = load("windlass.worker_app")
    command = app.WorkerCommand(
        executor=executor,
        mode=mode,
        listen=listen,
        accept_timeout=accept_timeout,
        idle_timeout=idle_timeout,
        ready_file=ready_file,
        spec_stdin=spec_stdin,
        tls_cert=tls_cert,
        tls_key=tls_key,
    )
    sys.exit(app.serve(command))
