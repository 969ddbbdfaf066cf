"""Programs that run what they are given, and the options that make others do so.

A list of what is known, and never whole: a rule about commands is a seat belt, not a jail (docs/permissions.md).
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SHELLS = frozenset(_names("sh bash dash ash zsh ksh mksh fish csh tcsh rbash pwsh"))

# Their arguments are another command, or hold one.
_RUNNERS = SHELLS | frozenset(
    _names(
        "env sudo doas su runuser pkexec setpriv chroot nsenter unshare systemd-run capsh busybox toybox xargs "
        "parallel nice ionice chrt taskset nohup setsid stdbuf unbuffer timeout time watch flock script strace "
        "ltrace perf valgrind exec eval command builtin source . trap coproc function ssh rsh mosh at batch "
        "crontab screen tmux dbus-run-session xvfb-run fakeroot proot firejail bwrap entr socat nc ncat netcat "
        "nix-shell"
    )
)
_RUNNING_SUBCOMMANDS = {
    "git": "bisect config daemon difftool filter-branch for-each-repo hook instaweb merge-index mergetool "
    "send-email submodule",
    "npm": "config exec explore set x",
    "pnpm": "config dlx exec",
    "yarn": "config dlx exec",
    "bun": "x exec",
    "docker": "exec run",
    "podman": "exec run",
    "kubectl": "exec run",
    "pipx": "run",
    "poetry": "run",
    "pdm": "run",
    "pipenv": "run",
    "hatch": "run",
    "conda": "run",
    "nix": "develop run shell",
    "mise": "exec x",
    "direnv": "exec",
    "uv": "run tool",
}

# An argument of theirs is code in a language of their own, which can run commands.
_TAKE_CODE = frozenset(_names("awk gawk mawk nawk sed gsed ed ex vi vim nvim emacs expect tclsh gdb osascript sqlite3"))
# What they run is in part their input.
_FED = frozenset(("xargs", "parallel"))
# These take code with an option, and a script else.
_INTERPRETERS = ("python", "pypy", "node", "deno", "bun", "perl", "ruby", "php", "lua", "Rscript", "julia")


# Options before the subcommand whose value is the next word: it is not the subcommand.
_WITH_VALUE = {
    "git": _names("-C -c --git-dir --work-tree --namespace --exec-path"),
    "npm": _names("-C --prefix"),
    "docker": _names("-H -c --context --host"),
}
_SETTING = re.compile(r"[\w-]+\.")


class _Options(NamedTuple):
    """Options that make a program run another, or write where it else only reads.

    `short` are letters, also in the middle of a bundle; `long` names with two dashes may be cut short, as most programs
    take them. `setting` is an option that does so if the next word is a setting (section.name). `variables`: also an
    argument of the form NAME=VALUE. `dashless`: the first argument may be a bundle without its dash.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    setting: str = ""
    variables: bool = False
    dashless: bool = False

    def are_in(self, words: Sequence[str]) -> bool:
        if any(self._has(word) for word in words) or (self.dashless and self._has(f"-{words[0]}" if words else "")):
            return True
        return any(word == self.setting and _SETTING.match(value) for word, value in pairwise(words))

    def _has(self, word: str) -> bool:
        if not word.startswith("-"):
            return self.variables and "=" in word
        name = word.partition("=")[0]
        if word.startswith("--"):
            return len(name) > len("--") and any(long.startswith(name) for long in self.long)
        return name in self.long or any(letter in self.short for letter in name[1:])


_NODE_PACKAGES = _Options(
    "cC",
    _names("--call --cwd --dir --eval --exec --globalconfig --node-options --package --prefix --script-shell --shell"
          " --userconfig"),
)  # fmt: skip
_OPTIONS = {
    "find": _Options(long=_names("-delete -exec -execdir -fls -fprint -fprint0 -fprintf -ok -okdir")),
    "fd": _Options("xX", ("--exec", "--exec-batch")),
    "fdfind": _Options("xX", ("--exec", "--exec-batch")),
    "rg": _Options(long=("--pre", "--hostname-bin")),
    "git": _Options(
        "xO",
        _names("--config --config-env --exec --exec-path --ext-diff --extcmd --git-dir --open-files-in-pager --output"
              " --receive-pack --template --textconv --upload-pack --work-tree"),
        setting="-c",
    ),
    "git clone": _Options("cu"),
    "hg": _Options(long=("--config",)),
    "svn": _Options(long=("--config-option", "--diff-cmd", "--diff3-cmd", "--editor-cmd")),
    "npm": _NODE_PACKAGES,
    "npx": _NODE_PACKAGES,
    "pnpm": _NODE_PACKAGES,
    "pnpx": _NODE_PACKAGES,
    "yarn": _NODE_PACKAGES,
    "bun": _NODE_PACKAGES,
    "bunx": _NODE_PACKAGES,
    "go": _Options(
        long=_names("-exec --exec -modfile --modfile -overlay --overlay -toolexec --toolexec -vettool --vettool")
    ),
    "cargo": _Options(long=("--config",)),
    "make": _Options("CEIf", ("--directory", "--eval", "--file", "--include-dir", "--makefile"), variables=True),
    "gmake": _Options("CEIf", ("--directory", "--eval", "--file", "--include-dir", "--makefile"), variables=True),
    "cmake": _Options("EP"),
    "tar": _Options(
        "FI",
        _names("--checkpoint-action --info-script --new-volume-script --rmt-command --rsh-command --to-command"
              " --use-compress-program"),
        dashless=True,
    ),
    "rsync": _Options("e", ("--rsh", "--rsync-path")),
    "scp": _Options("oS"),
    "sftp": _Options("DoS"),
    "zip": _Options("T", ("--test", "--unzip-command")),
    "split": _Options(long=("--filter",)),
    "wget": _Options("e", ("--config", "--execute", "--use-askpass")),
    "bat": _Options(long=("--pager",)),
    "ag": _Options(long=("--pager",)),
    "mapfile": _Options("C"),
    "readarray": _Options("C"),
    "sort": _Options("o", ("--compress-program", "--output")),
    "man": _Options("HPX", ("--html", "--pager")),
    "tree": _Options("o"),
}  # fmt: skip


def name_of(program: str) -> str:
    """Without the directory it lies in."""
    return program.rpartition("/")[2]


def plainly(words: Sequence[str]) -> tuple[str, ...]:
    """As people write rules: without the program's directory, and without the options before a subcommand."""
    name, rest = name_of(words[0]), tuple(words[1:])
    place = _subcommand_place(name, rest) if name in _RUNNING_SUBCOMMANDS else 0
    return (name, *rest[place:])


def runs_others(words: Sequence[str]) -> bool:
    """Whether this command is known to run another one that it is given, or to write where it else only reads."""
    name, rest = name_of(words[0]), words[1:]
    if name in _RUNNERS or name in _TAKE_CODE:
        return True
    subcommand = _subcommand(name, rest)
    if subcommand in _RUNNING_SUBCOMMANDS.get(name, "").split():
        return True
    known = [_OPTIONS[key] for key in (name, f"{name} {subcommand}") if key in _OPTIONS]
    return any(options.are_in(rest) for options in known)


def _subcommand(name: str, words: Sequence[str]) -> str:
    place = _subcommand_place(name, words)
    return words[place] if place < len(words) else ""


def _subcommand_place(name: str, words: Sequence[str]) -> int:
    before = ""
    for place, word in enumerate(words):
        if not word.startswith("-") and before not in _WITH_VALUE.get(name, ()):
            return place
        before = word
    return len(words)


def takes_code(words: Sequence[str]) -> bool:
    """Whether what it does is written in a language that is not read here; or comes from its input."""
    name = name_of(words[0])
    if name in SHELLS:
        bundles = "".join(word for word in words[1:] if word.startswith("-") and not word.startswith("--"))
        return "c" not in bundles or "s" in bundles
    return name in _FED or name in _TAKE_CODE or name.startswith(_INTERPRETERS)
