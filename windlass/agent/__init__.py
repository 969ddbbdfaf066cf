"""The executor that is an agent: it talks to a model, runs the tools the model asks for, and goes on until it is done.

`loop.py` is the story; `asking.py` is one model call, `calls.py` the tools of one step, `compaction.py` makes room,
`history.py` makes any stored conversation one that a provider accepts.
"""
