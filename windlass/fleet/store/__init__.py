"""Sessions of agents as files, by project."""
