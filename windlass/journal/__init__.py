"""The log: facts in one order, durable before anyone sees them, and the tables built from them.

Nothing outside this room knows that it is SQLite.
"""
