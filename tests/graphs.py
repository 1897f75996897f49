"""Random workflows, and node types whose outcome is a function of what they are given."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pflow.model.value import digest
from pflow.model.workflow import Edge, Node, Policy, Retry, Workflow
from pflow.nodes import Routed, StepContext, node


class Flaky(Exception):
    pass


@node("t/mix", effect="quiet")
async def mix(step: StepContext, seen: list[Any], fail: int = 0, route: str = "") -> Any:
    """A digest of everything it sees; fails on its first ``fail`` attempts."""
    if step.attempt <= fail:
        raise Flaky(f"attempt {step.attempt} of {step.visit}")
    made = {"value": digest(seen)[:8]}
    return Routed(made, route) if route else made


@node("t/effect")
async def effect(step: StepContext, seen: list[Any], fail: int = 0, route: str = "") -> Any:
    """The same, impure."""
    return await mix(step, seen, fail, route)


@st.composite
def workflows(draw: st.DrawFn, failures: bool = False, kinds: tuple[str, ...] = ("t/mix", "t/effect")) -> Workflow:
    """Graphs without cycles, with guards, routes, retries, and loops over a body of their own."""
    count = draw(st.integers(1, 7))
    nodes, edges = [], []
    above: dict[int, set[int]] = {}
    for i in range(count):
        sources = sorted(draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else []
        above[i] = set(sources).union(*(above[s] for s in sources))
        for source in sources:
            on = draw(
                st.sampled_from(
                    ["*", "*", "*", "left", "right", "default", "error"] if failures else ["*"] * 3 + ["left"]
                )
            )
            edges.append(Edge(f"n{source}", f"n{i}", on))
        seen = [f"{{{{?n{a}.value}}}}" for a in sorted(above[i])] + [i]
        tries = draw(st.integers(0, 2))
        params: dict[str, Any] = {
            "seen": seen,
            "fail": tries,
            "route": draw(st.sampled_from(["", "", "left", "right"])),
        }
        attempts = tries + 1 if not failures else draw(st.integers(1, 3))
        guard = ["same", ["path", f"n{max(above[i])}", "skipped"], ["value", draw(st.booleans())]] if above[i] and draw(
            st.integers(0, 3)
        ) == 0 else None  # fmt: skip
        policy = Policy(Retry(attempts, 0.5 * tries), tolerate=failures and draw(st.booleans()))
        nodes.append(Node(f"n{i}", draw(st.sampled_from(kinds)), params, guard, policy))
        if draw(st.integers(0, 3)) == 0:
            params = {"seen": ["{{item}}", *seen], "fail": draw(st.integers(0, 1))}
            body = Node(f"b{i}", kinds[0], params, policy=Policy(Retry(2)))
            loop = {"items": list(range(draw(st.integers(0, 3)))), "body": [f"b{i}"]}
            nodes += [Node(f"f{i}", "control.foreach", loop), body]
            edges.append(Edge(f"n{i}", f"f{i}"))
    fail_fast = not failures or draw(st.booleans())
    return Workflow("random", "test", tuple(nodes), tuple(edges), fail_fast=fail_fast, width=draw(st.integers(1, 3)))
