"""Where a page is walked: a home, a small project in it, and `windlass` and `python3` on the path."""

import os
import sys
from pathlib import Path

from tests.docs.pages import ROOT
from windlass.testing import canary


def lay_out(directory: Path) -> None:
    project = directory / "home/project"
    (project / "src").mkdir(parents=True)
    (project / "notes.txt").write_text("hello\n")
    (project / "src/app.py").write_text('print("hello")\n')
    (directory / "bin").mkdir()
    (directory / "server.log").touch()
    program = directory / "bin/windlass"
    # Which certificates are trusted is read when the libraries load: who says so needs a program of its own.
    program.write_text(
        f'#!/bin/sh\n[ -n "$SSL_CERT_FILE" ] && exec {sys.executable} -m windlass "$@"\n'
        f'exec {sys.executable} -I -S {ROOT / "tests/docs/shim.py"} "$@"\n'
    )
    program.chmod(0o755)
    python = directory / "bin/python3"
    # What a server starts has not the shell's environment: it is started as anywhere.
    python.write_text(
        f'#!/bin/sh\ncase "${{DOCS_SOCKET:+$1}}" in *.py) ;; *) exec {sys.executable} "$@" ;; esac\n'
        f'DOCS_PROGRAM=python3 exec {sys.executable} -I -S {ROOT / "tests/docs/shim.py"} "$@"\n'
    )
    python.chmod(0o755)


def environment(directory: Path) -> dict[str, str]:
    """Nothing of the person who runs the tests: no keys, no config, no model that runs here by chance."""
    return {
        "PATH": f"{directory / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(directory / "home"),
        "PYTHONPATH": str(ROOT),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
        "WINDLASS_NO_START": "1",  # a server that nobody on the page knows of would be left behind
        "WINDLASS_LOCAL_SERVERS": "",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "DOCS_SOCKET": str(directory / "socket"),
        **canary.ENVIRONMENT,
    }
