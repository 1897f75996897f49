"""The id of a visit, and its grammar: the one place that puts ids together and takes them apart.

    a#1           the first visit of node a
    s#1/i#2       the second visit of i, in the workflow that s#1 runs
    s#1/~1/i#1    … in the second workflow that s#1 runs
    f#1/0/i#1     i, for the first item of the loop f#1

What the ids of one scope begin with is its *prefix*: nothing for the run's own, else it ends in a slash.
"""

from __future__ import annotations

from collections.abc import Iterator


def names_node(text: str) -> bool:
    """Whether a text can be the id of a node, so that ids of visits can be taken apart again."""
    return bool(text) and "/" not in text and "#" not in text


def visit_id(prefix: str, node: str, n: int = 1) -> str:
    """The id of a node's n-th visit in a scope."""
    return f"{prefix}{node}#{n}"


def node_of(visit: str) -> str:
    """The node that is visited."""
    return visit.rpartition("/")[2].rpartition("#")[0]


def number_of(visit: str) -> int:
    """Which of its node's visits it is, counted from 1."""
    return int(visit.rpartition("#")[2])


def prefix_of(visit: str) -> str:
    """The prefix of the scope that a visit is in."""
    return visit[: visit.rfind("/") + 1]


def is_nested(visit: str) -> bool:
    """Whether a visit is inside of another one."""
    return "/" in visit


def top_of(visit: str) -> str:
    """The run's own visit that a visit is, or is inside of."""
    return visit.partition("/")[0]


def is_within(visit: str, outer: str) -> bool:
    """Whether a visit is another one, or is inside of it."""
    return visit == outer or visit.startswith(f"{outer}/")


def workflow_prefix(visit: str, k: int) -> str:
    """The prefix of the k-th workflow, counted from 0, that a visit runs."""
    return f"{visit}/~{k}/" if k else f"{visit}/"


def item_prefix(visit: str, item: int) -> str:
    """The prefix of what a loop does for one of its items."""
    return f"{visit}/{item}/"


def owner_of(prefix: str) -> str:
    """The visit that a scope belongs to: the longest start of its prefix that is a visit's id."""
    path = prefix[:-1]
    while path and not _is_visit(path.rpartition("/")[2]):
        path = path.rpartition("/")[0]
    return path


def parts_of(visit: str) -> Iterator[tuple[str, int]]:
    """The steps of the way to a visit: a node with the number of its visit; an item or a workflow of one has 0."""
    for part in visit.split("/"):
        node, _, n = part.rpartition("#")
        yield (node, int(n)) if node else (part, 0)


def short(visit: str) -> str:
    """A visit as people call it: ``a`` for ``a#1``, ``a#2`` for its second, ``s/i`` and ``f[0]/i`` for nested ones."""
    name = ""
    for part in visit.split("/"):
        if part.isdigit():
            name += f"[{part}]"
        elif not _is_workflow(part):
            name += ("/" if name else "") + part.removesuffix("#1")
    return name


def terse(visit: str) -> str:
    """An id in which first visits go without their number."""
    return "/".join(part.removesuffix("#1") for part in visit.split("/"))


def meant(at: str) -> str:
    """The visit that a person means: ``a`` is the first one of its node, ``s/i`` is inside of another."""
    return "/".join(visit_id("", part) if _is_node(part) else part for part in at.split("/"))


def _is_visit(part: str) -> bool:
    return "#" in part


def _is_workflow(part: str) -> bool:
    return part.startswith("~") and not _is_visit(part)


def _is_node(part: str) -> bool:
    return bool(part) and not _is_visit(part) and not part.isdigit() and not _is_workflow(part)
