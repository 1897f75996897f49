"""Settings: defaults, changes, and errors that say where and what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pflow import settings
from pflow.errors import UsageError, WorkflowError
from pflow.settings import DESCRIPTIONS, Settings, load, parse_duration, save, set_value


def names(value: Any, prefix: str = "") -> list[str]:
    """The full name of every setting."""
    if not isinstance(value, msgspec.Struct):
        return [prefix.rstrip(".")]
    return [name for field in value.__struct_fields__ for name in names(getattr(value, field), f"{prefix}{field}.")]


def test_every_setting_is_described() -> None:
    """No setting lacks a description, and no description its setting."""
    assert names(Settings()) == list(DESCRIPTIONS)
    assert all(text.endswith(".") for text in DESCRIPTIONS.values())


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    """A fresh home is no error and is not touched."""
    assert load(tmp_path) == Settings()
    assert load(tmp_path).cache.ttl == "24h"
    assert list(tmp_path.iterdir()) == []


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """The file holds only what was changed."""
    changed = set_value(set_value(Settings(), "cache.ttl", "48h"), "env.API_KEY", "s3cret")
    save(changed, tmp_path)
    assert load(tmp_path) == changed
    assert msgspec.json.decode((tmp_path / "settings.json").read_bytes()) == {
        "cache": {"ttl": "48h"},
        "env": {"API_KEY": "s3cret"},
    }


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    """People who keep their settings elsewhere go on doing so."""
    (tmp_path / "settings.json").symlink_to(tmp_path / "dotfiles.json")
    save(set_value(Settings(), "model.default", "m"), tmp_path)
    assert (tmp_path / "settings.json").is_symlink()
    assert load(tmp_path).model.default == "m"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("cache.ttl", 3600, "3600"),
        ("cache.iteration-mode", "off", False),
        ("cache.iteration_mode", True, True),
        ("cache.max_mb", "64", 64),
        ("shell.output_limit", "1_000", 1000),
        ("runs.dir", "/tmp/runs", "/tmp/runs"),
    ],
)
def test_text_is_converted_to_the_settings_type(name: str, value: Any, expected: object) -> None:
    """A command line's words and a file's values are both understood."""
    section, key = name.replace("-", "_").split(".")
    assert getattr(getattr(set_value(Settings(), name, value), section), key) == expected


def test_none_takes_a_change_back() -> None:
    """A setting returns to its default, a secret is removed."""
    changed = set_value(set_value(Settings(), "cache.max_mb", 1), "env.a.b", "x")
    assert changed.env == {"a.b": "x"}
    assert set_value(set_value(changed, "cache.max_mb", None), "env.a.b", None) == Settings()


@pytest.mark.parametrize(
    ("name", "value", "message", "hint"),
    [
        ("cache.tll", "1h", 'unknown setting "cache.tll"', 'did you mean "cache.ttl"?'),
        ("cahce.ttl", "1h", "unknown setting", 'did you mean "cache.ttl"?'),
        ("cache", "1h", "unknown setting", "cache.ttl"),
        ("env", "1h", "unknown setting", "env.NAME"),
        ("cache.ttl", "soon", "cache.ttl: 'soon' is not a duration", "48h"),
        ("cache.ttl", "-1", "not a duration", "48h"),
        ("cache.iteration_mode", "maybe", "is a switch", "on or off"),
        ("cache.max_mb", "lots", "is a whole number", "512"),
        ("cache.max_mb", True, "is a whole number", "512"),
        ("model.default", 3, "is text", "quotes"),
        ("env.KEY", 3, "env.KEY must be text", "quotes"),
    ],
)
def test_a_wrong_setting_is_explained(name: str, value: Any, message: str, hint: str) -> None:
    """The error says what is wrong and the hint what to write."""
    with pytest.raises(UsageError) as caught:
        set_value(Settings(), name, value)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "cache": {\n    "tll": "1h"\n  }\n}', 'settings.json:3:5: unknown setting "cache.tll"'),
        ('{\n  "cahce": {}\n}', 'settings.json:2:3: unknown key "cahce"'),
        ('{"cache": {},\n "shell": 3}', 'settings.json:2:11: "shell" must be a mapping, not a number'),
        ('{"env.A":\n {"B": "x"}}', 'settings.json:1:2: unknown key "env.A"'),
        ('{"cache": {\n}', "settings.json:2:2: "),
        ("[]", "settings.json:1:1: "),
        ("", "settings.json:1:1: the file is empty"),
        ('{"model": {"default": "\xff"}}', "settings.json:1:24: "),
        ('{\n"cache": {"ttl": "x"}}', "settings.json:2:11: cache.ttl: 'x' is not a duration"),
    ],
)
def test_a_wrong_file_is_explained_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    """File and line come first, as in any compiler's message."""
    (tmp_path / "settings.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(WorkflowError) as caught:
        load(tmp_path)
    (problem,) = caught.value.problems
    assert message in str(problem) and problem.hint


def test_everything_wrong_in_a_file_is_told_at_once(tmp_path: Path) -> None:
    text = '{"cache": {"tll": "1h",\n "max_mb": "lots"},\n "env": {"KEY": 4711},\n "shel": {}}'
    (tmp_path / "settings.json").write_text(text)
    with pytest.raises(WorkflowError) as caught:
        load(tmp_path)
    assert [(problem.place.line, problem.message) for problem in caught.value.problems] == [
        (1, 'unknown setting "cache.tll"'),
        (2, "cache.max_mb is a whole number, not 'lots'"),
        (3, "env.KEY must be text"),
        (4, 'unknown key "shel"'),
    ]
    assert "4711" not in caught.value.message


def test_settings_that_are_right_are_read_without_the_reader_of_documents(tmp_path: Path) -> None:
    """Every start reads them."""
    (tmp_path / "settings.json").write_text('{"cache": {"ttl": "1h"}}')
    code = """import sys; from pathlib import Path; from pflow.settings import load
assert load(Path(".")).cache.ttl == "1h" and "pflow.documents" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_secret_is_not_quoted_in_an_error(tmp_path: Path) -> None:
    """What stands under env never appears in a message."""
    (tmp_path / settings.FILE).write_text('{"env": {"KEY": 4711}}')
    with pytest.raises(WorkflowError) as caught:
        load(tmp_path)
    assert "4711" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("text", "seconds"), [("48h", 172800), ("30m", 1800), ("90s", 90), ("2d", 172800), ("3600", 3600), (" 1.5H ", 5400)]
)
def test_durations(text: str, seconds: float) -> None:
    """Units are seconds, minutes, hours, days and weeks; a bare number is seconds."""
    assert parse_duration(text) == seconds


def test_a_setting_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text('{"cache": {"ttl": "3h", "ttl": "4h"}}')
    with pytest.raises(WorkflowError, match="twice"):
        load(tmp_path)
