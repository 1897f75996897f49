"""Forking: a new run that is another one up to a certain visit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Unpack

import msgspec

from pflow.app.driver import Driver
from pflow.app.options import Keywords, Options
from pflow.app.runs import begun, find
from pflow.errors import UsageError
from pflow.model.records import AnyRecord, Finished, Loaded, Opened
from pflow.model.visit import is_within, meant, prefix_of, top_of
from pflow.storage import runs
from pflow.storage.files import home as default_home
from pflow.storage.journal import as_it_stands
from pflow.storage.journal import read as read_journal


def fork(run: str | Path, at: str, **options: Unpack[Keywords]) -> str:
    """A new run that is the old one up to just before it came to ``at`` (a node, or a visit ``node#n``)."""
    chosen = Options(**options)
    source = runs.RunFolder(find(run, chosen.home))
    found = begun(source, list(read_journal(source.journal, as_it_stands)))
    opened = found[0]
    assert isinstance(opened, Opened)
    cut = _first_mention(found, at)
    target = runs.create(source.path.parent, runs.new_id(opened.workflow, time.time()))
    held = Driver.create(target, chosen.durable)  # what was sealed stays sealed
    try:
        for name in opened.documents.values():
            held.journal.require(target.copy_document(source, name))
        held.log.append(msgspec.structs.replace(opened, t=time.time(), run=target.id, forked=f"{source.id}@{at}"))
        for record in found[1:cut]:
            if isinstance(record, Loaded):
                held.journal.require(target.copy_document(source, record.name))
            if not isinstance(record, Finished):
                held.log.append(record)
        held.log.sync()
    finally:
        held.close()
    home = chosen.home or default_home()
    if target.path.parent != home / "runs":
        runs.register(target.id, target.path, home)
    return target.id


def _first_mention(found: list[AnyRecord], at: str) -> int:
    """Where a run first came to a node or visit: its first record, or the first one of what ran inside it."""
    visits = [getattr(record, "visit", "") for record in found]
    wanted = meant(at)
    for position, visit in enumerate(visits):
        if is_within(visit, wanted):
            return position
    scope = prefix_of(wanted)
    inside = [visit for visit in visits if visit.startswith(scope)] if scope else []
    known = dict.fromkeys(inside or (top_of(visit) for visit in visits if visit))
    raise UsageError(f'the run never came to "{at}"', f"it came to: {', '.join(known) or 'nothing yet'}")
