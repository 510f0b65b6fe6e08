"""``python -m onion``: the command line."""

import sys

from onion.cli import main

if __name__ == "__main__":
    sys.exit(main())
