"""What flows into visits while they are under way: values that are fed to them, and answers to what they pull.

All of it follows from the scheduler's commands, so a replay brings it back: a visit that is executed again finds what
it was fed, and hears the answers that it had heard before it asks anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pflow.errors import NodeError
from pflow.kernel.attempt import Failed
from pflow.model.conversation import Conversation
from pflow.model.records import PULL, Answer, Asked, Feed, Outcome
from pflow.nodes.step import StepContext

if TYPE_CHECKING:
    from pflow.kernel.run import Run
    from pflow.kernel.scope import Scope

Ask = tuple[str, int]  # port, n


class Streams:
    """What a reactive scope holds beside its scheduler."""

    def __init__(self) -> None:
        self.feeds: dict[str, list[dict[str, Any]]] = {}  # by visit
        self.asked: dict[str, set[Ask]] = {}
        self.answers: dict[str, dict[Ask, Answer]] = {}
        self.changed: list[Conversation] = []  # by the visit that ended last
        self.contexts: dict[str, Conversation] = {}  # the newest by id
        self.main: Conversation | None = None

    def take(self, command: Feed | Answer) -> None:
        """A visit under way was pushed to, or answered."""
        if isinstance(command, Feed):
            self.feeds.setdefault(command.visit, []).append(command.values)
        else:
            self.answers.setdefault(command.visit, {})[command.port, command.n] = command

    def ask(self, fact: Asked) -> None:
        """A visit pulls."""
        self.asked.setdefault(fact.visit, set()).add((fact.port, fact.n))

    def ended(self, visit: str, outcome: Outcome) -> None:
        """A visit is over, and has changed conversations. Tried again, it asks anew for what it did not get."""
        self.feeds.pop(visit, None)
        self.asked.pop(visit, None)
        answers = self.answers.pop(visit, {})
        if outcome.status in ("failed", "cancelled"):
            good = {ask: answer for ask, answer in answers.items() if answer.failure is None}
            if good:
                self.answers[visit] = good
        made = [value for value in outcome.outputs.values() if isinstance(value, Conversation)]
        self.changed = [one for one in made if self._is_news(one)]

    def _is_news(self, made: Conversation) -> bool:
        known = self.contexts.get(made.context_id)
        self.contexts[made.context_id] = made
        if made.context_type == "main":
            self.main = made
        return known is None or known.key != made.key


class VisitStream:
    """The live inputs of one attempt."""

    def __init__(self, run: Run, scope: Scope, live: Streams, step: StepContext) -> None:
        self._run = run
        self._scope = scope
        self._live = live
        self._step = step
        self._pulls: dict[str, int] = {}
        self.ports = scope.plan.nodes[step.node_id].ports

    @property
    def main(self) -> Conversation | None:
        """The newest main conversation."""
        return self._live.main

    def seen(self) -> int:
        """How many feeds have arrived."""
        return len(self._live.feeds.get(self._step.visit, ()))

    def values(self) -> dict[str, Any]:
        """What has been pushed so far."""
        made = dict(self._step.inputs)
        for values in self._live.feeds.get(self._step.visit, ()):
            made |= values
        return made

    async def pull(self, name: str) -> Any:
        """The live value of an input, or what its source makes of it now."""
        n = self._pulls[name] = self._pulls.get(name, -1) + 1
        ask, visit, live = (PULL + name, n), self._step.visit, self._live
        if ask not in live.answers.get(visit, ()):
            values = self.values()
            if name in values:
                return values[name]
            self._check(name)
            if ask not in live.asked.get(visit, ()):
                run = self._run
                run.post(self._scope, Asked(run.clock.now(), visit, self._step.attempt, *ask))
                run.go(self._scope)
            if ask not in live.answers.get(visit, ()):
                await self._run.waits.wait((visit, *ask))
        answer = live.answers[visit][ask]
        if answer.failure is not None:
            raise Failed(answer.failure)
        return answer.value

    def _check(self, name: str) -> None:
        edges = self.ports.get(name, 0)
        if edges > 1:
            raise NodeError(
                f'cannot pull "{name}": {edges} edges lead to it, and none has pushed yet',
                "an input with several edges can only be pushed to; ask inputs.has() first",
                "pull",
            )
        if not edges:
            known = ", ".join(self.ports) or "none"
            raise NodeError(f'cannot pull "{name}": no edge leads to it', f"connected inputs: {known}", "pull")
