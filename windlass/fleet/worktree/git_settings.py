"""How git is told to work for us and not for whoever wrote the repository.

A repository can name programs: hooks, a file system monitor, filters, a remote to fetch a missing object from. Nobody
allowed any of them when an agent was started, so none runs (A25). What remains: filters in the user's own global or
system configuration (git-lfs is one). The user put them there, and files would be wrong without them.
"""

import os
from collections.abc import Mapping

from windlass import limits

# Where the user's own configuration is. Every other GIT_* would lead git to another repository than the one it is in.
_KEPT = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # looking must not take a lock that somebody else wants
    "GIT_EDITOR": ":",
    # A partial clone fetches what it lacks, with the ssh command and the helpers that its configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # the same for versions that do not know the line above
    "LC_ALL": "C",  # we read its words
    "LANGUAGE": "",
}
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    # A directory of the repository that looks like a bare one would be taken for one, with a configuration of its own.
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "commit.gpgSign": "false",  # it could ask for a passphrase
    "core.safecrlf": "false",  # else a file with the wrong line ends could not be kept at all
    "advice.addEmbeddedRepo": "false",
    "gc.auto": "0",  # nobody waits for a repack here
    "maintenance.auto": "false",
    "core.filesRefLockTimeout": str(int(limits.GIT_LOCK_SECONDS * 1000)),
    "core.packedRefsTimeout": str(int(limits.GIT_LOCK_SECONDS * 1000)),
}
_FILTER_PARTS = {"clean": "", "smudge": "", "process": "", "required": "false"}  # and what makes each do nothing
# What is asked of git's configuration in a directory before a command there touches files.
ASKED = r"^(filter\..*|user\.(name|email))$"

Setting = tuple[str, str, str]  # scope, key, value


def full_environment(
    environment: Mapping[str, str], settings: Mapping[str, str], identity: Mapping[str, str]
) -> dict[str, str]:
    """What git is started with: the user's environment, made safe, and our settings, which nothing overrides."""
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or name in _KEPT}
    # A relative entry would mean a program in the repository.
    path = os.pathsep.join(entry for entry in kept.get("PATH", "").split(os.pathsep) if os.path.isabs(entry))
    told = {}
    for number, (key, value) in enumerate({**_SETTINGS, **settings}.items()):
        # In the environment and not as `-c key=value`: a filter's name may have a `=` in it.
        told[f"GIT_CONFIG_KEY_{number}"] = key
        told[f"GIT_CONFIG_VALUE_{number}"] = value
    count = {"GIT_CONFIG_COUNT": str(len(told) // 2)}
    return {**kept, **_ENVIRONMENT, **identity, **told, **count, "PATH": path}


def configured(text: str) -> list[Setting]:
    """(scope, key, value) of `git config --show-scope -z`; the last one of a key is what counts."""
    pieces = text.split("\0")
    pairs = zip(pieces[::2], pieces[1::2], strict=False)
    return [(scope, *_key_and_value(setting)) for scope, setting in pairs]


def _key_and_value(setting: str) -> tuple[str, str]:
    key, _, value = setting.partition("\n")
    return key, value


def harmless_filters(entries: list[Setting]) -> dict[str, str]:
    """For every part of a filter that the repository configures: what the user says of it, else nothing to run."""
    users = {key: value for scope, key, value in entries if scope in ("global", "system")}
    settings = {}
    for scope, key, _ in entries:
        part = key.rpartition(".")[2]
        # Only what the repository sets: an empty `process` in addition would switch off the `clean` of the user.
        if scope not in ("global", "system", "command") and key.startswith("filter.") and part in _FILTER_PARTS:
            settings[key] = users.get(key, _FILTER_PARTS[part])
    return settings


def identity(entries: list[Setting]) -> dict[str, str]:
    """Who commits: the user as git knows them, else we."""
    known = {key: value for _, key, value in entries if value}
    name, email = known.get("user.name", "windlass"), known.get("user.email", "windlass@localhost")
    author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email}
    return {**author, "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email}
