"""Asks a DRPC server how often words were counted; see drpc_server.py.

    python examples/drpc_client.py localhost:3774 "cat dog" "the"

Several servers go with commas between them: where one is away, the next one is asked.
"""

from __future__ import annotations

import argparse
import json
import sys

from trident import DRPCClient
from trident.drpc.errors import DRPCError


def main(servers: str, questions: list[str]) -> None:
    with DRPCClient(*servers.split(","), timeout=2) as client:
        for question in questions:
            try:
                [[answer]] = json.loads(client.execute("words", question))
                print(f"{question}: {answer}")
            except DRPCError as error:
                sys.exit(str(error))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask a DRPC server how often words were counted.")
    parser.add_argument("servers", help="host:port, several with commas between them")
    parser.add_argument("questions", nargs="+", help="words, with spaces between them")
    main(**vars(parser.parse_args()))
