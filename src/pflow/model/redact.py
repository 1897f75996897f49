"""Redaction: secrets are taken out of whatever is shown or leaves; a run itself works with whole values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pflow.model.conversation import Conversation
from pflow.model.value import Value

HIDDEN = "[redacted]"
_TELLING = re.compile(
    r"authorization|cookie|passw(or)?d|secret|credential|private[-_]?key|(^|[-_.])(api[-_]?key|token|auth)([-_.]|$)",
    re.I,
)
_SHORTEST = 6  # characters: anything shorter would hide ordinary text


def looks_secret(name: str) -> bool:
    """Whether what goes by this name is likely to be a credential."""
    return bool(_TELLING.search(name)) and not name.lower().endswith("_tokens")


class Redactor:
    """Takes known secrets, and what goes by a telling name, out of texts and values."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known))) if known else None

    def text(self, text: str) -> str:
        """A text without the secrets in it."""
        return self._pattern.sub(HIDDEN, text) if self._pattern is not None else text

    def value(self, value: Value) -> Value:
        """A value without secrets; the same object where there is none."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            made = [self.value(item) for item in value]
            return value if all(a is b for a, b in zip(made, value, strict=True)) else made
        if isinstance(value, Mapping):
            fields = {key: self._field(key, item) for key, item in value.items()}
            return value if all(fields[key] is item for key, item in value.items()) else fields
        return self.value(value.whole()) if isinstance(value, Conversation) else value

    def _field(self, key: str, item: Value) -> Value:
        telling = isinstance(item, str) and item and looks_secret(key)
        return HIDDEN if telling else self.value(item)


def known_secrets(settings_env: Mapping[str, str], environment: Mapping[str, str], given: Iterable[Any]) -> list[str]:
    """The secrets of this user and this run: from settings, from telling environment variables, from secret inputs."""
    found = list(settings_env.values())
    found += [text for name, text in environment.items() if looks_secret(name)]
    return found + [text for text in given if isinstance(text, str)]
