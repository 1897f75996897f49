"""What can go wrong when a model is asked."""

from __future__ import annotations

from pflow.errors import NodeError

_EXCERPT = 300


class ModelError(NodeError):
    """A model gave no answer; its kind is model, timeout, rate_limit, refused or auth."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        kind: str = "model",
        details: dict[str, object] | None = None,
        *,
        wait: float | None = None,
    ) -> None:
        super().__init__(message, hint, kind, details)
        self.wait = wait  # seconds after which the call may be repeated; None: it may not, or would not help


def excerpt(text: str | bytes, size: int = _EXCERPT) -> str:
    """The beginning of what somebody sent, on one line."""
    text = text[: 4 * size]
    line = " ".join((text.decode("utf-8", "replace") if isinstance(text, bytes) else text).split())
    return line if len(line) <= size else f"{line[:size]}…"
