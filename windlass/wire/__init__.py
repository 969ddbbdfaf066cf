"""Every shape that crosses a boundary, defined once: server, clients, workers and docs use these.

No logic lives here, and nothing of ours is imported: a wire type can be read by anyone who has this folder.
"""
