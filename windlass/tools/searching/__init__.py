"""How `glob` and `grep` search: a process of their own for each search, which walks, matches and reports.

`search.py` starts and ends it, `search_process.py` is what runs in it. Which lines match is decided by Python alone;
ripgrep, where it is installed, only says which files are worth reading.
"""
