"""Node types of this project: every function here that is decorated with ``@node`` is one."""

from collections import Counter
from typing import Any

from pflow import flow_safe, node


@flow_safe
@node("text/word-count", version="1.0.0", inline=True, outputs=("words", "top"), examples=[{"text": "a b a"}])
def word_count(text: str, top: int = 10) -> dict[str, Any]:
    """Count the words of a text, and tell which occur most."""
    words = text.lower().split()
    return {"words": len(words), "top": Counter(words).most_common(top)}
