"""The crash suite: the real server under load, killed at random moments, again and again on one data directory.

    python -m tests.crash --rounds 50 --seed 7

Clients prompt, cancel, answer permissions and follow the stream; the server is killed with SIGKILL (also while it is
starting, and while it is stopping) and started again; clients come back with what they had. At the end everything they
were told is compared with what is there. A violation is printed with the seed, and the exit code is 1.

    told.py      what clients sent and what they were told
    crowd.py     the clients
    model.py     what the model says, and whether what it is sent makes sense
    rounds.py    start, let the crowd work, kill, repeat
    found.py     what is there at the end
    check.py     the comparison

Killing a process does not test what a power cut does to the disk: the page cache survives it. It tests the order in
which things are written, told and taken up again.
"""
