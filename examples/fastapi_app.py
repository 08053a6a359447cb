"""A FastAPI application that counts words, and answers for the counts in two ways.

    pip install ".[drpc]" fastapi uvicorn
    python examples/fastapi_app.py --port 8000
    curl "http://localhost:8000/words?text=cat%20dog"
    curl http://localhost:8000/storm/drpc/words/cat%20dog
    curl http://localhost:8000/storm/api/v1/state/counts/cat

The first URL is the application's own, which asks the run in its process without blocking the
event loop; below ``/storm`` are those of a DRPC server. The count is kept in a folder, and goes on
there at the next start.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException

from trident import Count, FilterNull, FixedBatchSpout, MapGet, Split, Sum, TridentTopology
from trident.drpc.errors import DRPCTimeoutError
from trident.server import DRPCApp

LINES = [("the cat sat on the mat",), ("the dog saw the cat",), ("the man walked the dog",)]


def word_count(data: Path) -> TridentTopology:
    """Return the topology: a count of words, and a function that sums those of some."""
    topology = TridentTopology()
    counts = (
        topology.newStream("lines", FixedBatchSpout("line string", 1, *LINES))
        .each("line", Split(), "word")
        .groupBy("word")
        .persistentAggregate(f"sqlite:{data / 'counts.db'}", Count(), "count", name="counts")
    )
    (
        topology.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .filter("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    return topology


def application(data: Path) -> FastAPI:
    """Return the application, which counts from its start to its end."""

    @asynccontextmanager
    async def counting(app: FastAPI) -> AsyncIterator[None]:
        with (
            word_count(data).start(checkpoint=data / "checkpoint") as run,
            closing(DRPCApp(run)) as drpc,
        ):
            app.state.run = run
            app.mount("/storm", drpc)
            yield

    app = FastAPI(lifespan=counting)

    @app.get("/words")
    async def words(text: str) -> dict[str, object]:
        try:
            answer = await app.state.run.drpc.execute_async("words", text, timeout=2)
        except DRPCTimeoutError as error:
            raise HTTPException(504, str(error)) from error
        [[count]] = json.loads(answer)
        return {"words": text.split(), "count": count}

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--data", type=Path, default=Path("fastapi-data"))
    options = parser.parse_args()

    options.data.mkdir(parents=True, exist_ok=True)
    uvicorn.run(application(options.data), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
