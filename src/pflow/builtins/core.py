"""Values: say something, hold something, compare two things."""

from __future__ import annotations

from typing import Any

from pflow.nodes import NodeError, flow_safe, node, same

LONGEST = 10_000_000  # characters that `echo` will make


@flow_safe
@node(
    "echo",
    version="1",
    inline=True,
    effect="pure",
    main_in="text",
    main_out="text",
    aliases={"message": "text"},
    outputs=("text", "echo", "data"),
    examples=[{"text": "hello"}, {"text": "hi", "count": 2, "uppercase": True}],
)
def echo(
    text: str = "", count: int = 1, uppercase: bool = False, prefix: str = "", suffix: str = "", data: Any = None
) -> dict[str, Any]:
    """Return a text, with the changes asked for, and hand ``data`` through."""
    if count < 0 or count * (len(text) + 1) > LONGEST:
        raise NodeError(
            f"count is {count}", f"0 or more, and not over {LONGEST:,} characters in all", kind="validation"
        )
    made = prefix + " ".join([text] * count) + suffix
    made = made.upper() if uppercase else made
    return {"text": made, "echo": made, "data": data}


@flow_safe
@node(
    "constant", version="1", inline=True, effect="pure", main_out="value", outputs=("value",), examples=[{"value": 1}]
)
def constant(value: Any) -> dict[str, Any]:
    """Return a value as it is."""
    return {"value": value}


@flow_safe
@node(
    "condition.equals",
    version="1",
    inline=True,
    effect="pure",
    main_out="value",
    outputs=("value",),
    examples=[{"left": 1, "right": 1.0}, {"left": True, "right": "true"}],
)
def equals(left: Any, right: Any) -> dict[str, Any]:
    """Whether two values are equal as JSON: ``true`` is not ``"true"``, the order of keys does not matter."""
    return {"value": same(left, right)}
