"""The decisions: pure state machines without I/O, without a clock of their own and without `await`.

On one event loop that makes each of them atomic, so whole families of races cannot exist. They change their own state
and return facts; whoever calls them commits those at once.
"""
