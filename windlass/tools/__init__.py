"""What an agent can do: one file a tool, and the registry that offers them to a model.

A tool is asked twice (see `wire/tools.py`): `plan` says what would be done and is what people approve, `run` does
exactly that. File access goes through a `WorkspaceRoot` (files.py), commands through the `Spawner` port, so no tool
opens a path or starts a command by itself. Searches run in a process of our own code (searching/), which is given the
workspace's open directory and dies with us.
"""
