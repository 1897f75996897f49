"""A journal in memory that keeps its records, as they would come back from disk."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pflow.model.run import AnyRecord

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyRecord).decode


class ListLog:
    """Keeps records in a list; ``before`` is called ahead of each, for instance to look at the run or to fail."""

    def __init__(self, before: Callable[[AnyRecord], None] | None = None) -> None:
        self.records: list[AnyRecord] = []
        self.synced = 0  # how many records were on disk at the last sync
        self._before = before

    def append(self, record: AnyRecord) -> None:
        """Keep a record, after a round trip through its written form."""
        if self._before is not None:
            self._before(record)
        made: AnyRecord = _decode(_encode(record))
        self.records.append(made)

    def sync(self) -> None:
        """Note that everything so far is on disk."""
        self.synced = len(self.records)
