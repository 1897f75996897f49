"""Who runs before whom, and where a graph bites its tail."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

_NEAR = 64  # how far to look upwards before all descendants are collected instead


class Ancestry:
    """Answers whether one node leads to another."""

    def __init__(self, links: Iterable[tuple[str, str]]) -> None:
        self._up: dict[str, list[str]] = {}
        self._down: dict[str, list[str]] = {}
        self._below: dict[str, set[str]] = {}
        for source, target in links:
            self._up.setdefault(target, []).append(source)
            self._down.setdefault(source, []).append(target)

    def leads(self, source: str, target: str) -> bool:
        """Whether a path leads from ``source`` to ``target``."""
        if source in self._up.get(target, ()):
            return True
        seen = {target}
        queue = deque([target])
        while queue and len(seen) < _NEAR:
            for above in self._up.get(queue.popleft(), ()):
                if above == source:
                    return True
                if above not in seen:
                    seen.add(above)
                    queue.append(above)
        return bool(queue) and target in self._descendants(source)

    def _descendants(self, source: str) -> set[str]:
        found = self._below.get(source)
        if found is None:
            found, stack = set[str](), [source]
            while stack:
                for below in self._down.get(stack.pop(), ()):
                    if below not in found:
                        found.add(below)
                        stack.append(below)
            self._below[source] = found
        return found


def cycle(ids: Sequence[str], links: Sequence[tuple[str, str]]) -> list[str]:
    """The ids along one cycle, the first repeated at the end; empty when there is none."""
    down: dict[str, list[str]] = {node_id: [] for node_id in ids}
    counts = dict.fromkeys(ids, 0)
    for source, target in links:
        down[source].append(target)
        counts[target] += 1
    queue = deque(node_id for node_id, count in counts.items() if not count)
    while queue:
        for target in down[queue.popleft()]:
            counts[target] -= 1
            if not counts[target]:
                queue.append(target)
    rest = {node_id for node_id, count in counts.items() if count}
    return _ring(rest, links) if rest else []


def _ring(rest: set[str], links: Sequence[tuple[str, str]]) -> list[str]:
    """Every node that is left has one above it that is left, too: walking upwards must come round."""
    above = {target: source for source, target in links if source in rest and target in rest}
    node, path, seen = min(rest), [], set[str]()
    while node not in seen:
        seen.add(node)
        path.append(node)
        node = above[node]
    ring = path[path.index(node) :]
    return [node, *reversed(ring[1:]), node] if len(ring) > 1 else [node, node]
