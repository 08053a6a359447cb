"""Takes the picture of the page that the README shows: ``python -m tests.page.screenshot``.

The topology is real, and so are its figures: batches fail now and then, and queries are asked
meanwhile. It needs letters: ``apt-get install fonts-liberation``.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
import warnings
from io import BytesIO
from pathlib import Path
from time import monotonic

from PIL import Image

from tests.page.browser import UP_TO_DATE, started, wait_for
from trident import Count, FeederBatchSpout, FilterNull, MapGet, Max, Split, Sum, TridentTopology
from trident.api.run import Run
from trident.errors import FailedException, GuaranteeWarning

WORDS = "the cat dog cow man moon sat ran jumped over walked under a of and".split()
SECONDS = 10.0
_CHECKED = itertools.count(1)


def checked(word: str) -> bool:
    """Fails now and then, as what asks another service does."""
    if next(_CHECKED) % 400_000 == 0:
        raise FailedException("the dictionary is away")
    return word != "a"


# What went wrong is told with its file, which here is one of whoever takes the picture.
checked.__code__ = checked.__code__.replace(co_filename="words.py")


def topology(folder: Path, lines: FeederBatchSpout) -> TridentTopology:
    made = TridentTopology()
    words = made.newStream("lines", lines).each("line", Split(), "word").filter("word", checked)
    counts = words.groupBy("word").persistentAggregate(
        f"sqlite:{folder / 'counts.db'}?prefix=words", Count(), "count"
    )
    most = f"sqlite:{folder / 'counts.db'}?prefix=most&kind=nontransactional"
    counts.newValuesStream().persistentAggregate(most, "count", Max(), "most")
    (
        made.newDRPCStream("words")
        .each("args", Split(), "word")
        .groupBy("word")
        .stateQuery(counts, "word", MapGet(), "count")
        .filter("count", FilterNull())
        .aggregate("count", Sum(), "sum")
    )
    return made


def busy(run: Run, lines: FeederBatchSpout) -> None:
    """Feed it and ask it for a while."""
    until = monotonic() + SECONDS
    while monotonic() < until:
        for _ in range(3):
            lines.feed([[" ".join(random.choices(WORDS, k=6))] for _ in range(80)])
        for _ in range(5):
            run.drpc.execute("words", " ".join(random.choices(WORDS, k=3)))


def main(path: str = "docs/page.png") -> None:
    warnings.simplefilter("ignore", GuaranteeWarning)  # the page says it
    with tempfile.TemporaryDirectory(prefix="words-") as name:
        folder = Path(name)
        lines = FeederBatchSpout("line string")
        with (
            topology(folder, lines).start(checkpoint=folder / "checkpoint") as run,
            run.serve(port=0) as server,
            started() as browser,
        ):
            busy(run, lines)
            tab = browser.new_page(viewport={"width": 1280, "height": 1000})
            tab.goto(f"{server.url}/")
            wait_for(tab, UP_TO_DATE)
            end = tab.evaluate("document.getElementById('of-recent').getBoundingClientRect().top")
            tab.set_viewport_size({"width": 1280, "height": int(end)})
            with Image.open(BytesIO(tab.screenshot())) as picture:
                picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
