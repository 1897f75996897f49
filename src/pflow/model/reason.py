"""Reasons: why something was decided, as data. Front ends make sentences of them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Why = Literal[
    # a visit was skipped, or an effect taken as done
    "guard", "settled",
    # a route was chosen
    "when", "label", "default", "next", "end", "critical", "optional", "error", "stuck",
    # an earlier outcome stands in
    "cached", "same-inputs",
    # none does
    "off", "rerun", "new", "failed", "dropped", "config", "input", "file", "shared", "upstream", "resolved",
    "expired", "fresh", "gone",
    # what would come, as far as it can be told
    "above", "binding", "route", "first", "pushed", "pulled", "portal", "unreached", "composite",
]  # fmt: skip


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why: a kind for programs, and what is needed to say it."""

    kind: Why
    names: tuple[str, ...] = ()  # what it is about: params, files, nodes, a condition in words …
    then: dict[str, Any] = {}  # what was compared, part by part: as it was when an earlier outcome was made
    now: dict[str, Any] = {}
    age: float | None = None  # of an earlier outcome, in seconds
