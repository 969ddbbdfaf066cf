"""What `windlass doctor` looks at on this machine: its kernel, its programs, and the files of the data directory."""

import os
import shutil
import stat
import time
from pathlib import Path

from windlass import config, limits
from windlass.cli.finding import Finding

_SECRETS = ("token", "tokens.json", "server.json")
_EARLIEST = 1_760_000_000.0  # October 2025: this program did not exist before


def check_place(data_dir: Path, config_file: Path | None) -> list[Finding]:
    """Everything but what `checks` has: each looks, changes nothing, and says what it found in one sentence."""
    try:
        settings: config.Config | None = config.load(config_file)
    except config.ConfigError:
        settings = None  # what is wrong with the file is said already
    found = [check_secrets(data_dir), check_journal(data_dir), check_calls(), check_paths(), check_clock(time.time())]
    found += [check_git(shutil.which("git")), check_ripgrep(shutil.which("rg"))]
    return [*found, *(check_mcp(settings) if settings is not None else [])]


def check_secrets(data_dir: Path) -> Finding:
    """Tokens, and what holds one, are for their owner alone."""
    for name in _SECRETS:
        path = data_dir / name
        try:
            status = path.lstat()
        except OSError:
            continue  # not there yet, or a directory that is not ours to look into: said elsewhere
        if not stat.S_ISREG(status.st_mode):
            return Finding("FAIL", "Tokens", f"{path} is no regular file. Remove it; the server makes a new one.")
        if status.st_uid != os.geteuid():
            return Finding("FAIL", "Tokens", f"{path} belongs to another user. Use another --data-dir.")
        if stat.S_IMODE(status.st_mode) & 0o077:
            says = f"others could read {path}. Run: chmod 600 {path}, and make new tokens with `windlass token create`."
            return Finding("FAIL", "Tokens", says)
    return Finding("OK", "Tokens", "only you can read them.")


def check_journal(data_dir: Path) -> Finding:
    """Whether the database holds together, also while a server writes it."""
    from windlass.journal.inspection import damage

    path = data_dir / "journal.db"
    if not path.exists():
        return Finding("OK", "Journal", "there is none yet; the server makes it.")
    size = f"{path.stat().st_size / limits.MIB:.1f} MiB"
    try:
        found = damage(path, limits.DOCTOR_JOURNAL_SECONDS)
    except OSError as error:
        return Finding("FAIL", "Journal", f"{path} cannot be read: {error}. Check its mode and owner.")
    if found is None:
        return Finding("WARN", "Journal", f"{size}; too large to look at all of it. `windlass rebuild --check` does.")
    if found:
        says = f"{path} is damaged ({found[0]}). Stop the server and restore a backup: windlass restore BACKUP"
        return Finding("FAIL", "Journal", says)
    return Finding("OK", "Journal", f"{size}, in order.")


def check_calls() -> Finding:
    """Whether commands can be kept from the system calls that lead round Landlock."""
    from windlass.guardian.calls import call_filter

    if call_filter() is not None:
        return Finding("OK", "Seccomp", "commands are kept from system calls that lead round the fence.")
    return Finding("WARN", "Seccomp", "not offered by this kernel or processor: a command may find a way to our port.")


def check_paths() -> Finding:
    from windlass.tools.beneath import openat2_works

    if openat2_works():
        return Finding("OK", "Paths", "no tool can be led out of its workspace by a link (openat2).")
    says = "no openat2 (Linux 5.6, or a container that forbids it): tools follow no symbolic links in a workspace."
    return Finding("WARN", "Paths", says)


def check_clock(now: float) -> Finding:
    if now < _EARLIEST:
        day = time.strftime("%Y-%m-%d", time.gmtime(now))
        return Finding("FAIL", "Clock", f"it says {day}. Set it: sessions are sorted by it, and TLS needs it.")
    return Finding("OK", "Clock", time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now)) + ".")


def check_git(program: str | None) -> Finding:
    if program is None:
        says = "not installed: sub-agents with a worktree of their own cannot work. Install git if you want them."
        return Finding("WARN", "Git", says)
    return Finding("OK", "Git", program)


def check_ripgrep(program: str | None) -> Finding:
    if program is None:
        return Finding("OK", "Search", "ripgrep is not installed: searching works, but takes longer in large trees.")
    return Finding("OK", "Search", f"{program} makes it quick.")


def check_mcp(settings: config.Config) -> list[Finding]:
    """Each server of the config: whether its program is there. None is started."""
    found = []
    for name, server in settings.mcp.items():
        what = f"MCP {name}"
        if server.disabled:
            found.append(Finding("OK", what, "disabled in the config."))
        elif not server.command:
            # Not its address: that may hold a key (A39).
            found.append(Finding("OK", what, "reached over HTTP; asked when a run needs it."))
        elif shutil.which(server.command[0]) is None:
            says = f"{server.command[0]} was not found. Install it, or set mcp.{name}.disabled."
            found.append(Finding("WARN", what, says))
        else:
            found.append(Finding("OK", what, f"{server.command[0]} is there; started when a run needs it."))
    return found
