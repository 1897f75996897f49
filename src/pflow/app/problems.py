"""Problems as data: what front ends print as JSON."""

from __future__ import annotations

from typing import Any

from pflow.errors import Place


def place_view(place: Place) -> dict[str, Any] | None:
    """A place as JSON shows it; None where nothing is known of it."""
    if not place.file and not place.line:
        return None
    return {"file": place.file, "line": place.line, "column": place.column}
