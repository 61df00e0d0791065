"""`python -m fairfrontier`: the command line."""

import sys

from fairfrontier.cli import main

if __name__ == "__main__":
    sys.exit(main())
