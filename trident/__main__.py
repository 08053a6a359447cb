"""``python -m trident``: the commands of :mod:`trident.cli`."""

from __future__ import annotations

import sys

from trident.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
