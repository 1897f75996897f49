"""Views: written whole, and only when they changed."""

from __future__ import annotations

import json
from pathlib import Path

from pflow.app.views import Views
from pflow.model.records import Outcome


def test_views_are_json_for_people(tmp_path: Path) -> None:
    """Files in nested folders hold indented JSON, structs included."""
    Views(tmp_path).write({"state.json": {"a": 1}, "nodes/s/nodes/i/output.json": Outcome("completed", {"x": 1})})
    assert (tmp_path / "state.json").read_text() == '{\n  "a": 1\n}\n'
    output = json.loads((tmp_path / "nodes/s/nodes/i/output.json").read_text())
    assert output == {"status": "completed", "outputs": {"x": 1}}


def test_unchanged_views_are_not_written_again(tmp_path: Path) -> None:
    """Only what differs from the last write touches the disk."""
    views = Views(tmp_path)
    assert views.write({"state.json": {"n": 1}, "context.json": {}}) == 2
    before = (tmp_path / "context.json").stat().st_ino
    assert views.write({"state.json": {"n": 2}, "context.json": {}}) == 1
    assert (tmp_path / "context.json").stat().st_ino == before


def test_a_process_that_opens_a_run_repairs_its_views(tmp_path: Path) -> None:
    """A fresh instance trusts nothing that is there."""
    Views(tmp_path).write({"state.json": {"n": 1}})
    (tmp_path / "state.json").write_text("half")
    Views(tmp_path).write({"state.json": {"n": 1}})
    assert json.loads((tmp_path / "state.json").read_text()) == {"n": 1}
