"""A random model of the protocol that keeps state exact, in plain Python.

It shares no code with the library: drivers, tasks and readers are generators that stop before
every access to something shared, an adversary decides who goes on, who dies and which write
comes late, and what readers see is compared with a plain dict.  Every rule of the protocol can
be taken out (`Rules.without`), and the search then has to find a wrong result.

Examples
--------
>>> from tests.protocol.model import Rules, Setup, search
>>> search(Setup("fenced"), Rules(), runs=20) is None
True
>>> search(Setup("fenced"), Rules().without("attempts"), runs=1000) is None
False
"""

from tests.protocol.model.rules import Ability, Harm, Rules, Setup
from tests.protocol.model.search import Found, Trace, replay, search, shrink
from tests.protocol.model.world import Wrong

__all__ = [
    "Ability",
    "Found",
    "Harm",
    "Rules",
    "Setup",
    "Trace",
    "Wrong",
    "replay",
    "search",
    "shrink",
]
