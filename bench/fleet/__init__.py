"""What it costs to execute a run in a process of its own; `sections/fleet.py` puts the three measurements together."""
