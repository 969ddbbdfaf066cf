"""`python -m tests.page.pictures`: make the pictures of the README (docs/pictures/) in a real browser."""

import os
import subprocess
import sys


def main() -> int:
    environment = {**os.environ, "WINDLASS_PICTURES": "1"}
    test = "tests/page/test_page_pictures.py"
    return subprocess.run([sys.executable, "-m", "pytest", test], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
