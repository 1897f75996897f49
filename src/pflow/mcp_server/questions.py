"""Questions of a run to the person behind a client, where the client can ask (elicitation).

A client of the older protocol is asked while the run waits. One of the newer is told what to ask as the result of its
call, and makes the call again with the answers: the run pauses in between, as any run that nobody answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pflow.model.records import Asked
from pflow.model.typed import choice_of

_STATE = "run:"


class Asking:
    """How a client is asked, in one call."""

    def __init__(self, context: Any, params: Any) -> None:
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        capabilities = context.session.client_capabilities
        able = capabilities is not None and capabilities.elicitation is not None
        self._session = context.session
        self._request = context.request_id
        self._modern = able and context.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._at_once = able and not self._modern and context.session.can_send_request
        self._responses: dict[str, Any] = params.input_responses or {}
        state = params.request_state or ""
        self.run_id = state.removeprefix(_STATE) if state.startswith(_STATE) else ""  # that the answers are for
        self.given_up = False

    async def answer(self, asked: Asked) -> Any:
        """The answer to a question of a run, or None for "not now"."""
        from mcp import MCPError

        if not self._at_once:
            return None
        try:
            result = await self._session.elicit_form(asked.question, _schema(asked), self._request)
        except MCPError:  # it cannot after all, or is gone
            return None
        return _value(asked, result)

    def answers(self, questions: Iterable[Asked]) -> list[tuple[Asked, Any]]:
        """The questions that the client brought answers to."""
        given = [(asked, self._responses.get(asked.visit)) for asked in questions]
        made = [(asked, _value(asked, response)) for asked, response in given if response is not None]
        return [(asked, value) for asked, value in made if value is not None]

    def wanted(self, view: dict[str, Any], questions: Iterable[Asked]) -> Any:
        """What to have the client ask before it calls again; None where it cannot, or does not want to."""
        if not self._modern or self.given_up or not view.get("waiting"):
            return None
        from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

        requests = {
            asked.visit: ElicitRequest(
                params=ElicitRequestFormParams(message=asked.question, requested_schema=_schema(asked))
            )
            for asked in questions
        }
        return InputRequiredResult(input_requests=requests, request_state=f"{_STATE}{view['run_id']}")


def _schema(asked: Asked) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "string", "title": "Answer"}
    if asked.choices:
        field["enum"] = list(asked.choices)
    return {"type": "object", "properties": {"answer": field}, "required": ["answer"]}


def _value(asked: Asked, result: Any) -> Any:
    """What was answered; None where nothing was, or none of the choices."""
    if getattr(result, "action", "") != "accept" or not result.content:
        return None
    value = result.content.get("answer")
    if asked.choices and value is not None:
        return choice_of(str(value), asked.choices)
    return value
