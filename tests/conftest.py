"""Fixtures every room may use."""
