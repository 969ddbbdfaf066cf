"""The executor that is an agent: it talks to a model, runs the tools the model asks for, and goes on until it is done.

`loop.py` is the story; `answer.py` is one answer while it streams, `calls.py` the tools of one step, `history.py` makes
any stored conversation one that a provider accepts.
"""
