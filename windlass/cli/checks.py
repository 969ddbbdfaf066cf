"""What `windlass doctor` looks at first. Each check looks, changes nothing, and says what it found in one sentence."""

import ctypes
import os
import platform
import shutil
import stat
import sys
from pathlib import Path

from windlass import config, limits
from windlass.cli.finding import Finding

_PR_GET_CHILD_SUBREAPER = 37
_UNCONFINED = "commands run unconfined, and permission requests say so. One you allow can read what you can read."


def check_machine(data_dir: Path, config_file: Path | None) -> list[Finding]:
    """Everything that can be seen without a server."""
    return [
        check_python(sys.version_info[:3]),
        check_config(config_file),
        check_data_dir(data_dir),
        check_disk(data_dir),
        check_subreaper(),
        check_landlock(config_file),
    ]


def check_python(version: tuple[int, int, int]) -> Finding:
    says = ".".join(str(number) for number in version)
    if version < (3, 11, 0):
        return Finding("FAIL", "Python", f"{says} is too old. Install Windlass with Python 3.11 or newer.")
    return Finding("OK", "Python", says)


def check_config(path: Path | None) -> Finding:
    file = path or config.default_config_file()
    try:
        settings = config.load(path)
    except config.ConfigError as error:
        return Finding("FAIL", "Config", str(error))
    source = str(file) if file.exists() else f"no file at {file}"
    provider = settings.providers[settings.model.partition("/")[0]]
    if provider.type == "scripted" and not provider.script:
        says = f"{source}; the built-in demo answers. For a real model set ANTHROPIC_API_KEY or OPENAI_API_KEY,"
        return Finding("WARN", "Config", f"{says} or `model` and [providers] in the file.")
    if provider.api_key_env and not provider.key():
        return Finding("FAIL", "Config", f"{source}; {settings.model} needs {provider.api_key_env}, which is not set.")
    return Finding("OK", "Config", f"{source}; the model is {settings.model}.")


def check_data_dir(path: Path) -> Finding:
    path = path.absolute()
    existing = _nearest_existing(path)
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        return Finding("FAIL", "Data", f"{existing} is not writable for you. Fix its mode, or use another --data-dir.")
    if existing != path:
        return Finding("OK", "Data", f"{path} does not exist yet; the server makes it.")
    status = path.stat()
    if status.st_uid != os.geteuid():
        return Finding("WARN", "Data", f"{path} belongs to another user, who can read your tokens.")
    if stat.S_IMODE(status.st_mode) & 0o077:
        return Finding("FAIL", "Data", f"Others can look into {path}. Run: chmod 700 {path}")
    return Finding("OK", "Data", f"{path} is writable and yours alone.")


def check_disk(path: Path) -> Finding:
    free = shutil.disk_usage(_nearest_existing(path)).free
    says = f"{free // limits.MIB} MiB free"
    if free < limits.DOCTOR_DISK_FAIL_BYTES:
        return Finding("FAIL", "Disk", f"{says}. A full disk stops the server; make room.")
    if free < limits.DOCTOR_DISK_WARN_BYTES:
        return Finding("WARN", "Disk", f"{says}. Make room, or lower retention_mb in the config.")
    return Finding("OK", "Disk", f"{says}.")


def check_subreaper() -> Finding:
    """The guardian must inherit every process that tools leave behind; that takes this call of Linux."""
    flag = ctypes.c_int()
    if platform.system() == "Linux" and _libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(flag), 0, 0, 0) == 0:
        return Finding("OK", "Guardian", "processes that tools start cannot outlive the server.")
    return Finding("FAIL", "Guardian", "this system has no child subreaper. Run the server on Linux 3.4 or newer.")


def check_landlock(config_file: Path | None) -> Finding:
    """Whether commands are confined, as the config and the kernel have it."""
    from windlass.tools.confinement import landlock_version, missing_in  # what it needs is loaded only here

    try:
        sandbox = config.load(config_file).bash.sandbox
    except config.ConfigError:
        sandbox = "auto"  # what is wrong with the file is said already
    if sandbox == "off":
        return Finding("WARN", "Landlock", f'[bash] sandbox = "off" in the config: {_UNCONFINED}')
    version = landlock_version()
    missing = "has none" if version < limits.LANDLOCK_VERSION else missing_in(version)
    if not missing:
        return Finding("OK", "Landlock", "commands are confined: they are kept from Windlass's own files and port.")
    if sandbox == "require":
        says = f'[bash] sandbox = "require", and this kernel is too old: no command is run. It has version {version}'
        return Finding("FAIL", "Landlock", f"{says}; 6 is needed (Linux 6.12).")
    if version < limits.LANDLOCK_VERSION:
        return Finding("WARN", "Landlock", f"not offered by this kernel: {_UNCONFINED}")
    return Finding("WARN", "Landlock", f"version {version}: commands are only partly confined. A command {missing}.")


async def check_models(config_file: Path | None) -> list[Finding]:
    """What is known of the model in use, and whether a model server runs on this machine that could be used."""
    from windlass.cli.model_report import find_local

    try:
        settings = config.load(config_file)
    except config.ConfigError:
        return []  # what is wrong with the file is said already
    found = check_known(settings)
    used = {provider.base_url.rstrip("/") for provider in settings.providers.values()}
    unused = [server for server in await find_local(dict(os.environ)) if server["base_url"] not in used]
    hints = "".join(
        f" {server['title']} answers at {server['base_url']}: `windlass models` says how to use it."
        for server in unused
    )
    return [Finding(found.level, found.what, found.says + hints)]


def check_known(settings: config.Config) -> Finding:
    """Whether the sizes and prices of the model in use are known, or only assumed."""
    from windlass.assembly import model_profiles

    name, _, id = settings.model.partition("/")
    model = next(one for one in model_profiles(settings, name) if one.id == id)
    says = f"{settings.model} has a context window of {model.context_window:,} tokens"
    is_said = any(one.id == id and one.context_window for one in settings.providers[name].models)
    if model.is_known or is_said or settings.providers[name].type == "scripted":
        return Finding("OK", "Models", f"{says}.")
    return Finding(
        "WARN", "Models", f"{says}, or so it is assumed: it is unknown here. Say more in providers.{name}.models."
    )


def _nearest_existing(path: Path) -> Path:
    path = path.absolute()
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
