"""A run: visits and outcomes, the facts and notes of its journal, the commands of its scheduler.

    Scheduler ── commands ──▶ kernel ── facts (journalled first) ──▶ scheduler
                                     └─ notes (journalled, folded by the kernel alone)

Every record starts with its time ``t`` and is tagged by ``k``; the run's state is a fold of its records.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from pflow.model.reason import Reason

VisitStatus = Literal["completed", "failed", "skipped", "cancelled"]
RunStatus = Literal["running", "completed", "failed", "paused", "interrupted", "cancelled"]
Decision = Literal["retry", "skip", "fail"]
Space = Literal["values", "cache", "portals", "session"]  # of a graph's store
PULL = "pull:"  # begins the port of an ask that another node answers, not a person


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why something failed, as data."""

    kind: str  # binding, node, timeout, cancelled, purity, routing, validation, doubt, …: what retry rules match
    message: str
    hint: str = ""
    error_type: str = ""  # the exception's class, where there was one
    stack_trace: str = ""
    details: dict[str, Any] = {}
    chain: tuple[str, ...] = ()  # visit ids, outermost first, for a failure inside a composite
    suggestions: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a visit ended."""

    status: VisitStatus
    outputs: dict[str, Any] = {}
    route: str | None = None
    failure: Failure | None = None
    reason: Reason | None = None  # why it was skipped or reused, or why its route was chosen
    reused: bool = False
    lineage: str = ""
    attempts: int = 1
    ms: float = 0.0
    usage: dict[str, Any] = {}
    saved: dict[str, Any] = {}  # what a reused outcome had cost when it was made


class Visit(msgspec.Struct, frozen=True, omit_defaults=True):
    """One execution of a node, named by its scheduler."""

    id: str  # "node#n"; nested ones are paths: "sub#1/node#1"
    node: str
    n: int = 1
    inputs: dict[str, Any] = {}  # what was pushed (reactive)
    after: tuple[str, ...] = ()  # the visits whose ends led here
    pulled: bool = False


class Record(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="k", tag=str.lower):
    """A line of the journal."""

    t: float


# Facts: journalled, then told to the scheduler.


class Ended(Record, frozen=True):
    """A visit ended."""

    visit: str
    outcome: Outcome
    seen: int = 0  # feeds delivered before it returned


class Asked(Record, frozen=True):
    """A visit asks: pulls a value, or waits for a person (``port`` is then ``user``)."""

    visit: str
    attempt: int
    port: str
    n: int
    question: str = ""
    choices: tuple[str, ...] = ()


class Cancelled(Record, frozen=True):
    """Somebody ended the run for good."""

    run: str
    why: str = ""


class Reopened(Record, frozen=True):
    """A failed or cancelled run goes on: same visit ids, next attempt."""

    run: str


# Notes: journalled, folded by the kernel, unknown to schedulers.


class Opened(Record, frozen=True):
    """The first record of a run."""

    run: str
    workflow: str
    dialect: str
    digest: str
    inputs: dict[str, Any] = {}
    documents: dict[str, str] = {}  # path as referenced → file name in the run's folder
    width: int = 1
    version: str = ""
    path: str = ""  # the workflow file, absolute
    cwd: str = ""
    options: dict[str, Any] = {}
    forked: str = ""  # "run@visit" this run is a prefix of


class Began(Record, frozen=True):
    """An impure attempt is about to touch the world: the intent."""

    visit: str
    attempt: int


class Tried(Record, frozen=True):
    """An attempt failed and another will follow at ``again_at``."""

    visit: str
    attempt: int
    failure: Failure
    again_at: float = 0.0
    ms: float = 0.0


class Replied(Record, frozen=True):
    """A person answered."""

    visit: str
    port: str
    n: int
    value: Any = None


class Doubt(Record, frozen=True):
    """What was decided about a visit whose effect may have happened."""

    visit: str
    attempt: int
    decision: Decision


class Shared(Record, frozen=True):
    """A node left a value for the other nodes of its run."""

    key: str
    value: Any = None


class Stored(Record, frozen=True):
    """A node of a graph put a value into the graph's store, which outlives the run; None takes it out again."""

    space: Space
    key: str
    value: Any = None


class Loaded(Record, frozen=True):
    """A document was loaded on the way, and the run keeps a copy of it."""

    path: str  # absolute
    name: str  # of the copy, in the run's folder


class Used(Record, frozen=True):
    """Tokens and money spent by a visit."""

    visit: str
    usage: dict[str, Any] = {}


class Finished(Record, frozen=True):
    """The run came to an end."""

    run: str
    status: RunStatus
    failure: Failure | None = None


Fact = Ended | Asked | Cancelled | Reopened
Note = Opened | Began | Tried | Replied | Doubt | Shared | Stored | Loaded | Used | Finished
AnyRecord = Fact | Note

# What stands in records beside ids, kinds and numbers. Whoever writes, reads or seals records goes by these two tables.
# Values are a node's or a user's, and JSON may not hold them as they are: ``value`` is one, the other fields are
# mappings of them or structs with fields of their own.
VALUES: dict[type, tuple[str, ...]] = {
    Ended: ("outcome",),
    Outcome: ("outputs", "failure", "reason", "usage", "saved"),
    Reason: ("then", "now"),
    Failure: ("details",),
    Opened: ("inputs", "options"),
    Tried: ("failure",),
    Finished: ("failure",),
    Replied: ("value",),
    Shared: ("value",),
    Stored: ("value",),
    Used: ("usage",),
}
# Texts are written by nodes and people: they may quote a value.
TEXTS: dict[type, tuple[str, ...]] = {
    Outcome: ("route",),
    Reason: ("names",),
    Failure: ("message", "hint", "stack_trace", "suggestions"),
    Asked: ("question", "choices"),
    Cancelled: ("why",),
}


# Commands: from a scheduler to the kernel, never written down.


class Start(msgspec.Struct, frozen=True):
    """Execute this visit."""

    visit: Visit


class Feed(msgspec.Struct, frozen=True):
    """Hand values to a visit that is running."""

    visit: str
    values: dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """Answer an ask."""

    visit: str
    attempt: int
    port: str
    n: int
    value: Any = None
    failure: Failure | None = None


class Stop(msgspec.Struct, frozen=True):
    """End this visit's work."""

    visit: str
    why: str


class Finish(msgspec.Struct, frozen=True):
    """Nothing is left to do."""

    status: RunStatus
    failure: Failure | None = None


class Say(msgspec.Struct, frozen=True):
    """Tell subscribers why: nothing else comes of it."""

    kind: str
    node: str
    data: dict[str, Any]


Command = Start | Feed | Answer | Stop | Finish | Say
