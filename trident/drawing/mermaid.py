"""The plan as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trident.plan.nodes import Node, StateQueryNode, StateUpdateNode
from trident.plan.plan import Plan
from trident.plan.stages import exchange, stages
from trident.states.printable import one_line


def to_mermaid(plan: Plan) -> str:
    """A flowchart: a box for each step, framed by stage, exchanges on the arrows, states round.

    Parameters
    ----------
    plan : Plan
        The topology.

    Returns
    -------
    str
        Lines without an end of line after the last.
    """
    lines = ["flowchart TD"]
    for group in plan.groups:
        lines += _part(f"group {group.id}", f"g{group.nodes[0].id}", group.nodes)
    for query in plan.drpc.values():
        lines += _part(f"query {query.function}", f"q{query.source.id}", query.nodes)
    for state in plan.states:
        lines.append(f"  state{state.id}[({_text(state.state.name)})]")
        if isinstance(state, StateUpdateNode):
            lines.append(f"  n{state.id} ==> state{state.id}")
    drawn = {node for part in plan.parts for node in part.nodes}
    for node in plan.nodes:
        if node in drawn:
            lines += _arrows(node)
    return "\n".join(lines)


def _part(title: str, id: str, nodes: Iterable[Node]) -> Iterator[str]:
    yield f"  subgraph {id} [{_text(title)}]"
    for stage in stages(nodes):
        many = "s" * (stage.partitions != 1)
        partitions = f", {stage.partitions} partition{many}" if stage.partitions else ""
        yield f"    subgraph {id}s{stage.number} [{_text(f'stage {stage.number}{partitions}')}]"
        for node in stage.nodes:
            yield f"      n{node.id}[{_text(node.call_text)}]"
        yield "    end"
    yield "  end"


def _arrows(node: Node) -> Iterator[str]:
    label = exchange(node)
    for parent in node.parents:
        arrow = f"-- {_text(label)} -->" if label else "-->"
        yield f"  n{parent.id} {arrow} n{node.id}"
    if isinstance(node, StateQueryNode):
        yield f"  state{node.state.id} -.-> n{node.id}"


def _text(text: str) -> str:
    """A text in quotes, in one line, with Mermaid's markup characters as entities."""
    entities = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}
    words = one_line(" ".join(text.split()))
    return f'"{"".join(entities.get(letter, letter) for letter in words)}"'
