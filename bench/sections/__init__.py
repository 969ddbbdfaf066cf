"""The sections of the bench: each is a module with `measure(plan, scratch)`, which returns its rows."""
