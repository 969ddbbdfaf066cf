"""Git branches and directories for agents that write."""
