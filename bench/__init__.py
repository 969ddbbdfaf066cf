"""What the server costs, measured: `python -m bench`, or `make bench` for all of it.

    python -m bench tokens clients          these sections
    python -m bench --quick                 shorter windows, for while one works on it
    python -m bench --write docs/bench.md   keep the table

Every figure stands beside a bare one that was measured in the same run: a uvloop program that only passes bytes on, one
SQLite commit, the import of the libraries. A ratio survives a change of machine; a figure alone does not.

The server under test is the one people run, in a process of its own, as are the model provider (`provider.py`), the
clients (`crowd.py`) and the bare loop (`bare.py`). `world.py` joins them; each file in `sections/` measures one thing.
"""
