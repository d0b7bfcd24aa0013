"""``python -m tkg_incremental``."""

import sys

from tkg_incremental.cli import main

if __name__ == "__main__":
    sys.exit(main())
