"""A journal in memory that keeps its records, as they would come back from disk."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from pflow.model.conversation import Threads
from pflow.model.records import AnyRecord, Ended

_decode = msgspec.json.Decoder(AnyRecord).decode


class ListLog:
    """Keeps records in a list; ``before`` is called ahead of each, for instance to look at the run or to fail."""

    def __init__(self, before: Callable[[AnyRecord], None] | None = None) -> None:
        self.records: list[AnyRecord] = []
        self.synced = 0  # how many records were on disk at the last sync
        self._before = before
        self._written, self._read = Threads(), Threads()
        self._encode = msgspec.json.Encoder(enc_hook=self._written.encode).encode

    def append(self, record: AnyRecord) -> None:
        """Keep a record, after a round trip through its written form."""
        if self._before is not None:
            self._before(record)
        made: AnyRecord = _decode(self._encode(record))
        self._written.written()
        if type(made) is Ended:
            made = replace(made, outcome=replace(made.outcome, outputs=self._read.decode(made.outcome.outputs)))
        self.records.append(made)

    def sync(self) -> None:
        """Note that everything so far is on disk."""
        self.synced = len(self.records)
