"""Windlass: an agent server that many clients share, with a fleet of sub-agent workers behind it."""

__version__ = "0.1.0"
