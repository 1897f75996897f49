"""Results that fit into an agent's context: what is large is cut, and how to fetch it is said."""

from __future__ import annotations

from typing import Any

from pflow.model.value import json_text, plain, portable

MOST = 6000  # characters of a value as JSON
_SCALES = ((1000, 20), (300, 10), (100, 5), (40, 2))  # characters of a text, items of a list or an object
_DEEPEST = 8


def small(value: Any, most: int = MOST) -> Any:
    """A value of about ``most`` characters: as it is if it fits, else with its long parts cut."""
    made = portable(plain(value))
    if len(json_text(made)) <= most:
        return made
    for text, items in _SCALES:
        cut = _cut(made, text, items, 0)
        if len(json_text(cut)) <= most:
            return cut
    return f"({len(json_text(made)):,} characters; use `field` with a path into it)"


def _cut(value: Any, text: int, items: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= text else f"{value[:text]}… ({len(value):,} characters)"
    if isinstance(value, list | dict) and depth > _DEEPEST:
        return "…"
    if isinstance(value, list):
        kept = [_cut(item, text, items, depth + 1) for item in value[:items]]
        return kept if len(value) <= items else [*kept, f"… ({len(value):,} items)"]
    if isinstance(value, dict):
        fields = {key: _cut(value[key], text, items, depth + 1) for key in list(value)[: max(items, 5)]}
        more = len(value) - len(fields)
        return fields | ({"…": f"{more:,} fields more"} if more else {})
    return value


def page(value: Any, start: int, most: int) -> dict[str, Any]:
    """A value whole if it fits, else a stretch of it as text, and where the next begins."""
    made = portable(plain(value))
    text = made if isinstance(made, str) else json_text(made)
    if not start and len(text) <= most:
        return {"value": made}
    view: dict[str, Any] = {"text": text[start : start + most], "characters": len(text)}
    return view | ({"next": start + most} if start + most < len(text) else {})
