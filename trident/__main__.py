"""``trident`` and ``python -m trident``: the commands of :mod:`trident.cli`."""

from __future__ import annotations

import sys
from io import TextIOWrapper


def main() -> int:
    """Run the command that this process was given; return its exit status."""
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error has it
    try:
        from trident.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("python -m trident: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
