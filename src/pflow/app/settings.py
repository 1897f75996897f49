"""Settings by name, to be shown and changed; secrets are listed, not shown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from pflow import settings
from pflow.errors import UsageError, suggest
from pflow.model.redact import HIDDEN
from pflow.settings import DESCRIPTIONS, Settings
from pflow.storage.files import home

SECTIONS = tuple(dict.fromkeys(name.partition(".")[0] for name in DESCRIPTIONS))


class Setting(msgspec.Struct, frozen=True):
    """A setting as it is now."""

    value: Any
    own: bool  # whether it differs from the default


def known(section: str = "") -> dict[str, Setting]:
    """The settings by name, of one section or all."""
    defaults = _values(Settings())
    return {
        name: Setting(value, value != defaults.get(name))
        for name, value in _values(settings.load()).items()
        if name.startswith(f"{section}." if section else "")
    }


def get(name: str) -> Setting:
    """A setting, or ``UsageError`` with the nearest names."""
    found = known()
    if name not in found:
        raise UsageError(f'there is no setting "{name}"', suggest(name, found, "settings"))
    return found[name]


def about(name: str) -> str:
    """What a setting is for; secrets have one purpose."""
    return DESCRIPTIONS.get(name) or DESCRIPTIONS[name.partition(".")[0]]


def change(name: str, value: str | None) -> None:
    """Change a setting; None gives the default back."""
    settings.save(settings.set_value(settings.load(), name, value))


def secret(name: str) -> str | None:
    """A secret of this user: from the environment, or from the settings."""
    return os.environ.get(name) or settings.load().env.get(name)


def file() -> Path:
    """Where the settings are kept."""
    return home() / settings.FILE


def _values(all_of_them: Settings) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in DESCRIPTIONS:
        section, _, key = name.partition(".")
        if key:
            made[name] = getattr(getattr(all_of_them, section), key)
    return made | {f"env.{key}": HIDDEN for key in all_of_them.env}
