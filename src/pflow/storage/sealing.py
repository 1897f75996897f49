"""Sealing: in a journal a secret stands as a reference to it, and never as itself.

A reference is ``NUL secret:NAME NUL``; a NUL of the text itself is written twice, so that no text can pass for one. Who
goes on with a run puts the secrets back; whoever only looks at it sees that something was hidden.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pflow.errors import UsageError
from pflow.model.records import TEXTS, VALUES, AnyRecord
from pflow.model.redact import HIDDEN

SHORTEST = 6  # characters: anything shorter is in ordinary text too often
SEALED = b"\\u0000"  # how JSON spells a NUL
_REFERENCE = re.compile("\0(?:\0|secret:([^\0]*)\0)")


class Seal:
    """The secrets of one run, by name."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        known = {name: text for name, text in (secrets or {}).items() if len(text) >= SHORTEST and "\0" not in name}
        self._texts = known
        self._names = {text: name for name, text in reversed(known.items())}  # of two names the first
        # As they stand in JSON, whose quotes are not part of them.
        self._spelled = (SEALED, *(msgspec.json.encode(text)[1:-1] for text in self._names))
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ["\0", *longest_first])))

    def concerns(self, encoded: bytes) -> bool:
        """Whether a record, as JSON, has anything to seal."""
        for spelled in self._spelled:  # noqa: SIM110 - every record of every run comes through here
            if spelled in encoded:
                return True
        return False

    def close(self, record: AnyRecord) -> AnyRecord:
        """The record with references for secrets."""
        made: AnyRecord = _changed(record, lambda text: self._pattern.sub(self._reference, text))
        return made

    def open(self, record: AnyRecord) -> AnyRecord:
        """The record with its secrets again; raises ``UsageError`` for one that nobody gave."""
        made: AnyRecord = _changed(record, lambda text: _REFERENCE.sub(self._secret, text))
        return made

    def _reference(self, found: re.Match[str]) -> str:
        return "\0\0" if found[0] == "\0" else f"\0secret:{self._names[found[0]]}\0"

    def _secret(self, found: re.Match[str]) -> str:
        if found[1] is None:
            return "\0"
        if found[1] not in self._texts:
            hint = f"give it again, or set it in the environment: {found[1]}=…"
            raise UsageError(f'the run needs the secret "{found[1]}", which is not kept with it', hint)
        return self._texts[found[1]]


def veiled(record: AnyRecord) -> AnyRecord:
    """The record for those who only look: what was sealed is hidden."""
    made: AnyRecord = _changed(
        record, lambda text: _REFERENCE.sub(lambda one: "\0" if one[1] is None else HIDDEN, text)
    )
    return made


def _changed(item: Any, change: Callable[[str], str]) -> Any:
    """A record or value with its texts changed; the same object where none was."""
    if isinstance(item, str):
        return change(item)
    if isinstance(item, (list, tuple)):
        made = [_changed(one, change) for one in item]
        return item if all(map(_same, made, item)) else type(item)(made)
    if isinstance(item, dict):
        fields = {change(key): _changed(value, change) for key, value in item.items()}
        return item if all(map(_same, fields.values(), item.values())) and fields.keys() == item.keys() else fields
    if isinstance(item, msgspec.Struct):
        kind = type(item)  # ids, kinds and states are never touched
        parts = {name: getattr(item, name) for name in (*VALUES.get(kind, ()), *TEXTS.get(kind, ()))}
        new = {name: made for name, value in parts.items() if (made := _changed(value, change)) is not value}
        return msgspec.structs.replace(item, **new) if new else item
    return item


def _same(made: Any, item: Any) -> bool:
    return made is item or (isinstance(item, str) and made == item)
