"""Tools of MCP servers: each workspace has its own servers, and runs ask for them through the engine's port.

    hub.py (one per Windlass server) -> servers.py (one per workspace) -> server.py (one per MCP server: its life)
        -> connection.py (a session of the SDK) over stdio.py or http.py

`connection.py` and what is below it import the SDK, which takes a second; nothing else here does.
"""
