"""The kinds of map state: what each keeps of a value, and how it is read, judged and written."""

from __future__ import annotations

from collections.abc import Mapping

from trident.states.kinds.kind import Kind
from trident.states.kinds.opaque import OPAQUE
from trident.states.kinds.plain import PLAIN
from trident.states.kinds.transactional import TRANSACTIONAL
from trident.states.values import StateType

KINDS: Mapping[StateType, Kind] = {kind.type: kind for kind in (OPAQUE, TRANSACTIONAL, PLAIN)}
