"""Questions to a person."""

from __future__ import annotations

from typing import Any

from pflow.nodes import NodeError, StepContext, node, to_text

TRIES = 3  # answers that are none of the choices, before the node fails


@node(
    "ask",
    version="1",
    effect="quiet",
    main_in="question",
    main_out="answer",
    outputs=("answer",),
    examples=[{"question": "Go on?", "choices": ["yes", "no"], "default": "yes"}, {"question": "Your name?"}],
)
async def ask(
    step: StepContext, question: str, choices: list[Any] | None = None, default: Any = None
) -> dict[str, Any]:
    """Ask a person and wait; a choice is also taken by its number or a beginning that is its alone."""
    if not question.strip():
        raise NodeError("the question is empty", "write what the person should be asked", kind="validation")
    options = _options(choices or [])
    fallback = _fallback(options, default)
    asked = question
    # Answers are kept with the run, so an attempt begins with the answers that the last one could not use.
    for _ in range(TRIES * step.attempt):
        answer = await step.ask(asked, tuple(options))
        said = to_text(answer).strip()
        if not said and default is not None:
            return {"answer": fallback}
        if not options:
            return {"answer": answer}
        chosen = _chosen(said, list(options))
        if chosen:
            return {"answer": options[chosen]}
        asked = f"“{said[:80]}” is none of the choices. {question}"
    raise NodeError(f"{TRIES} answers were none of the choices", f"the choices: {', '.join(options)}")


def _options(choices: list[Any]) -> dict[str, Any]:
    """The choices by their text."""
    options = {to_text(choice).strip(): choice for choice in choices}
    if "" in options:
        raise NodeError("a choice is empty", "give each choice a text", kind="validation")
    if len({text.casefold() for text in options}) < len(choices):
        hint = "choices differ in more than upper and lower case"
        raise NodeError("a choice is there twice", hint, kind="validation")
    return options


def _fallback(options: dict[str, Any], default: Any) -> Any:
    """The default, which must be a choice where there are any."""
    if default is None or not options:
        return default
    text = to_text(default).strip()
    chosen = next((option for option in options if option.casefold() == text.casefold()), "")
    if not chosen:
        hint = f"the choices: {', '.join(options)}"
        raise NodeError(f'default "{text}" is none of the choices', hint, kind="validation")
    return options[chosen]


def _chosen(said: str, options: list[str]) -> str:
    """The choice that an answer means: itself, by number or by its beginning; empty when that is not clear."""
    said = said.casefold()
    exact = [option for option in options if option.casefold() == said]
    if exact or not said:
        return exact[0] if exact else ""
    meant = {option for option in options if option.casefold().startswith(said)}
    if said.isdecimal() and 1 <= int(said[:9]) <= len(options):
        meant.add(options[int(said[:9]) - 1])
    return meant.pop() if len(meant) == 1 else ""
