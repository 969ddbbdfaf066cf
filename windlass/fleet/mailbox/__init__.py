"""Messages between agents that wait on disk."""
