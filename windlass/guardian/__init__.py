"""The guardian: nothing that was started for a run outlives the server (B18, B36, I19, I22).

A command can make itself a new session, fork twice and ignore every polite signal; process groups alone lose it then.
So commands are not started by the server. There are three kinds of process:

    server  ----socket----  guardian          one per server, in a session of its own
       \\                      |
        `------socket-----  keeper            one per command, forked by the guardian
                               |
                            command and everything it starts

A *keeper* is a subreaper: whatever is orphaned below it becomes its child, so "I have no children left" is exactly
"everything of this command is gone". It ends the tree when the server asks, when the command has ended and left
something behind, when the server is gone (its socket ends) and when the guardian is gone (a pipe ends). The *guardian*
is a subreaper too: it ends what a keeper that was killed leaves behind, and makes sure that all is over before it
goes itself. Only if guardian and keeper are killed with force at the same moment can a grandchild slip away; the
command itself does not even then (the kernel kills it with its keeper).

On a system that is not Linux there is no subreaper and no /proc: there the process group of the command is ended and
a command that leaves its group is lost. A process that runs as somebody else (`sudo`) cannot be killed by us on any
system; it is given up on rather than waited for without end.

    server side   handle.py (Guardian), process.py (what `spawn` returns)
    guardian side main.py, keeper.py, tree.py, fence.py, fenced.py, calls.py: only the standard library and
                  `windlass.limits`, for a fast start

This file imports nothing, because the guardian's process imports it: `from windlass.guardian.handle import Guardian`.
"""
