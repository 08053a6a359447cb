"""Adds to a plan, when it starts, the states that keep dead letters."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from trident.backends.rows import Rows
from trident.backends.state_spec import StateSpec
from trident.backends.state_url import StateURL
from trident.errors import PlanError
from trident.operations.dead_letters import LETTER, KeepLetters
from trident.operations.letter_folder import LetterFolder
from trident.plan import lowering
from trident.plan.arguments import Given
from trident.plan.builder import Builder, Position
from trident.plan.nodes import DeadLettersNode, SparingNode
from trident.plan.plan import BatchGroup, Plan
from trident.tuples.fields import Fields

PREFIX = "dead_letters."
"""What the name of a state of dead letters begins with; the id of its group follows."""


def with_dead_letters(plan: Plan, place: Any) -> Plan:
    """The plan with a state for the dead letters of each group that may have any; `place` is what
    ``partitionPersist`` takes, or None."""
    builder, place = Builder.of(plan), _read_place(place)
    with_any = {group.id: steps for group in plan.groups if (steps := _steps_with_letters(group))}
    if place is None and with_any:
        step = next(iter(with_any.values()))[0]
        what = f"start: nothing keeps the dead letters of the step at {step.origin}:"
        advice = 'Say where, as in dead_letters="sqlite:letters.db"; or use on_error="skip".'
        raise PlanError(what, step.call_text, (), advice)
    if place is not None and not with_any:
        what = "start: dead_letters= is given, and no step has any"
        advice = 'Add on_error="dead-letter", here or to the steps that it is meant for.'
        raise PlanError(what, "", (), advice)
    for group, steps in with_any.items():
        letters = Position(builder, builder.add(DeadLettersNode, parents=steps))
        name = PREFIX + group
        if isinstance(place, Rows):
            writer = copy(place)
            writer.name = f"{place.name}.{group}"
            lowering.persist_rows(letters, StateSpec(writer), None, name)
        else:
            given = Given(Fields(*LETTER.names), KeepLetters(), None)
            lowering.partition_persist(letters, place, given, name)
    return replace(plan, nodes=tuple(builder.nodes))


def _steps_with_letters(group: BatchGroup) -> tuple[SparingNode, ...]:
    """The steps of a group whose bad tuples are kept."""
    found = [node for node in group.nodes if isinstance(node, SparingNode)]
    return tuple([node for node in found if node.policy(group.on_error) == "dead-letter"])


def _read_place(place: Any) -> Any:
    """Make a place of a URL: a table if it has ``table=``, else a topic, a folder, or a map."""
    if not isinstance(place, str):
        return place
    url, _, options = place.partition("?")
    given = [each for each in options.split("&") if each]
    if tables := [each for each in given if each.startswith("table=")]:
        rest = "&".join(each for each in given if each not in tables)
        return Rows(f"{url}?{rest}" if rest else url, unquote(tables[-1].removeprefix("table=")))
    parsed = StateURL.parse(place)
    if parsed.scheme == "kafka":
        from trident.backends import kafka  # most topologies have none

        hosts = ",".join(f"{host}:{port or 9092}" for host, port in parsed.hosts)
        return kafka.sink(hosts, parsed.path.strip("/"))
    if (folder := LetterFolder.of(parsed)) is not None:
        return folder
    # Letters are few: the driver writes them, unless the URL says otherwise.
    return replace(parsed, options={"hosted": "driver", **parsed.options})
