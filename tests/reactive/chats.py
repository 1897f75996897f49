"""Graphs of real nodes for tests."""

from __future__ import annotations

from typing import Any

from pflow.model.records import AnyRecord, Asked
from pflow.model.workflow import Edge, Node, Workflow
from pflow.nodes.type import node
from tests.kernel.driving import Driven


def flow(*edges: str, nodes: dict[str, str] | None = None, **configs: dict[str, Any]) -> Workflow:
    """A graph from edges such as ``a.data > b.context``; nodes are of the type of their name unless said otherwise."""
    types = {"start": "defaultContextStart", **(nodes or {})}
    made, ids = [], ["start"]
    for edge in edges:
        (a, out), (b, port) = (_end(part) for part in edge.split(">"))
        made.append(Edge(a, b, out, port=port))
        ids += [a, b]
    declared = [Node(one, types.get(one, one), configs.get(one, {})) for one in dict.fromkeys([*ids, *types])]
    return Workflow("graph", "hifide", tuple(declared), tuple(made), scheduler="reactive")


def _end(text: str) -> tuple[str, str]:
    name, _, port = text.strip().partition(".")
    return name, port or "data"


def driven(
    made: Workflow, *types: Any, lines: list[str] | None = None, records: list[AnyRecord] | None = None
) -> Driven:
    """A graph that was driven as far as it goes; ``lines`` are what its user says."""
    return Driven(made, types, records=records or (), answer=speaker(lines or [])).drive()


def speaker(lines: list[str]) -> Any:
    rest = iter(lines)

    async def answer(asked: Asked) -> str | None:
        return next(rest, None)

    return answer


def log_of(run: Driven, kind: str) -> list[dict[str, Any]]:
    return [event.event.data for event in run.events if event.event.type == kind]


@node("bot")
async def bot(flow: Any, context: Any, data_in: Any, inputs: Any, config: Any) -> Any:
    """Answers like a model would, without one."""
    own = context if context is not None else await inputs.pull("context")
    text = data_in if data_in is not None else await inputs.pull("data")
    answer = f"{text}, {len(own)} messages before"
    for word in answer.split():
        flow.conversation.stream_chunk(word + " ")
    made = flow.context.add_messages(own, [{"role": "user", "content": text}, {"role": "assistant", "content": answer}])
    return {"context": made, "data": answer, "status": "success"}
