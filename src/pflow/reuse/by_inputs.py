"""Reuse by inputs: a pure node that was given the same before is not executed again, in any run (``--use-cache``)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pflow.model.reason import Reason
from pflow.model.run import Outcome
from pflow.reuse.key import key_of, read_files, type_parts
from pflow.reuse.policy import Call, Never, Recalled
from pflow.storage import entries


class ByInputs(Never):
    """Outcomes of pure nodes, by type, version, params, the shared values they declare and the files they read."""

    active = True

    def __init__(self, folder: Path, flow: str, workspace: Path) -> None:
        self._folder = folder
        self._flow = flow  # whose entries `reset` drops
        self._workspace = workspace
        self._asked: dict[str, Path] = {}  # visit → where its outcome would be; keyed before it runs

    def recall(self, call: Call) -> Recalled | Reason:
        """An earlier outcome for the same inputs."""
        unfit = self._unfit(call)
        if unfit is not None:
            return unfit
        path = self._asked[call.visit.id] = self._path(call)
        entry = entries.read(path)
        if entry is None or not isinstance(entry.get("outputs"), dict) or not isinstance(entry.get("writes"), dict):
            return Reason("new")
        outcome = Outcome(
            "completed", entry["outputs"], entry.get("route"), reason=Reason("same-inputs"), reused=True, attempts=0,
            lineage=entry.get("lineage", ""),
        )  # fmt: skip
        return Recalled(outcome, entry["writes"])

    def remember(self, call: Call, outcome: Outcome, writes: Mapping[str, Any]) -> Outcome:
        """Keep the outcome of a pure visit."""
        if self._unfit(call) or outcome.status != "completed":
            return outcome
        path = self._asked.pop(call.visit.id, None) or self._path(call)
        made = msgspec.structs.replace(outcome, lineage=path.stem)
        entry = {
            "node_id": call.visit.node,
            "node_type": call.planned.type.name,
            "flow": self._flow,
            "outputs": outcome.outputs,
            "route": outcome.route,
            "writes": dict(writes),
            "lineage": path.stem,
            "execution_time_ms": outcome.ms,
            "cached_at": time.time(),
        }
        if not entries.write(path, entry):
            self.lost = self._folder
        return made

    def reset(self) -> int:
        """Drop the entries that this flow made; tells how many."""
        paths = [path for path in self._folder.glob("*.json") if (entries.read(path) or {}).get("flow") == self._flow]
        return sum(entries.remove(path) for path in paths)

    def _unfit(self, call: Call) -> Reason | None:
        if call.planned.node.policy.cache is False:
            return Reason("off", ("setting",))
        standing = call.planned.type.standing
        if call.planned.effect != "pure" and standing != "pure":
            return Reason("off", ("impure",))
        return None

    def _path(self, call: Call) -> Path:
        kind = call.planned.type
        parts = type_parts(kind) | {
            "params": call.params,
            "shared": {name: call.shared.get(name) for name in kind.declared.shared},
            "files": read_files(kind, call.params, self._workspace),
        }
        return self._folder / f"{key_of(parts)}.json"
