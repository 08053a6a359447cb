"""The plan as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trident.states.printable import one_line


def to_mermaid(plan: Mapping[str, Any]) -> str:
    """Draw a plan, the result of `to_dict`, as a flowchart.

    Steps are boxes, framed by stage; exchanges are on the arrows; states are round.
    """
    nodes = {node["id"]: node for node in plan["nodes"]}
    states = {state["name"]: state["id"] for state in plan["states"]}
    parts = [("g", f"group {each['id']}", each["stages"]) for each in plan["groups"]]
    parts += [("q", f"query {each['function']}", each["stages"]) for each in plan["queries"]]
    lines = ["flowchart TD"]
    for letter, title, stages in parts:
        lines += _part(title, f"{letter}{stages[0]['nodes'][0]}", stages, nodes)
    for state in plan["states"]:
        lines.append(f"  state{state['id']}[({_text(state['name'])})]")
        if state["group"] is not None:
            lines.append(f"  n{state['id']} ==> state{state['id']}")
    for _, _, stages in parts:
        for stage in stages:
            lines += _arrows(stage, nodes, states)
    return "\n".join(lines)


def _part(
    title: str, id: str, stages: list[Mapping[str, Any]], nodes: Mapping[int, Mapping[str, Any]]
) -> Iterator[str]:
    yield f"  subgraph {id} [{_text(title)}]"
    for stage in stages:
        number, count = stage["number"], stage["partitions"]
        partitions = f", {count} partition{'s' * (count != 1)}" if count else ""
        yield f"    subgraph {id}s{number} [{_text(f'stage {number}{partitions}')}]"
        for node in stage["nodes"]:
            yield f"      n{node}[{_text(nodes[node]['text'])}]"
        yield "    end"
    yield "  end"


def _arrows(
    stage: Mapping[str, Any], nodes: Mapping[int, Mapping[str, Any]], states: Mapping[str, int]
) -> Iterator[str]:
    for position, id in enumerate(stage["nodes"]):
        label = stage["exchange"] if position == 0 else ""
        arrow = f"-- {_text(label)} -->" if label else "-->"
        for parent in nodes[id]["parents"]:
            yield f"  n{parent} {arrow} n{id}"
        if (read := nodes[id]["reads"]) is not None:
            yield f"  state{states[read]} -.-> n{id}"


def _text(text: str) -> str:
    """Put a text in quotes, in one line, with Mermaid's markup characters as entities."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
    words = one_line(" ".join(text.split()))
    return f'"{"".join(entities.get(letter, letter) for letter in words)}"'
