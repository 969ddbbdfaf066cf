"""`python -m windlass` is the same program as `windlass`."""

from windlass.cli.main import main

main()
