"""What a command may see of the server's environment: a list of what is let through, so never a credential (A30, A39).

A list of what is kept back would miss the next variable somebody puts a key in.
"""

from collections.abc import Mapping

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "MANPATH"),
        # Where toolchains live: directories, without which `python` or `cargo` would be another one than the user's.
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME"),
        *("RUSTUP_HOME", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for commands, out of the server's own."""
    kept = {name: value for name, value in environ.items() if name in _NAMES or name.startswith("LC_")}
    # There is no terminal: colours and cursor movements would only be noise to a model.
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **kept, "TERM": "dumb"}
