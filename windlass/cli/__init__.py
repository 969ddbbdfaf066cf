"""The command line: what people type. It speaks to a server through `windlass.client` only.

`main.py` is the entry point and loads one module per command, when that command is used.
"""
