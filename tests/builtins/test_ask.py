from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pflow.model.workflow import Node
from tests.builtins.running import NODE, VISIT, failure
from tests.kernel.driving import Driven, workflow


class Person:
    """Gives prepared answers, and keeps the questions."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.questions: list[tuple[str, Sequence[str]]] = []

    async def __call__(self, asked: Any) -> Any:
        self.questions.append((asked.question, asked.choices))
        return self.answers.pop(0) if self.answers else None


def asking(person: Person, **params: Any) -> Driven:
    return Driven(workflow(Node(NODE, "ask", params)), answer=person).drive()


def test_a_free_answer_is_handed_on() -> None:
    person = Person("Ada ")
    assert asking(person, question="Name?").outputs[NODE] == {"answer": "Ada "}
    assert person.questions == [("Name?", ())]


@pytest.mark.parametrize(
    ("said", "meant"),
    [("yes", "yes"), (" YES\n", "yes"), ("y", "yes"), ("2", "no"), ("3", "not now"), ("not", "not now"), ("NO", "no")],
)
def test_a_choice_is_taken_by_name_number_or_beginning(said: str, meant: str) -> None:
    person = Person(said)
    run = asking(person, question="Go on?", choices=["yes", "no", "not now"])
    assert run.outputs[NODE] == {"answer": meant}
    assert person.questions == [("Go on?", ("yes", "no", "not now"))]


@pytest.mark.parametrize(("said", "meant"), [(20, 20), ("20", 20), ("tr", True), (True, True)])
def test_a_choice_keeps_its_type(said: Any, meant: Any) -> None:
    assert asking(Person(said), question="?", choices=[20, 10, True]).outputs[NODE]["answer"] is meant


def test_an_empty_answer_means_the_default() -> None:
    assert asking(Person(""), question="?", default="d").outputs[NODE]["answer"] == "d"
    assert asking(Person("  "), question="?", choices=["Yes", "No"], default="yes").outputs[NODE]["answer"] == "Yes"
    assert asking(Person(""), question="?").outputs[NODE]["answer"] == ""


@pytest.mark.parametrize("said", ["maybe", "n", "9", "", "0"])
def test_what_is_no_choice_is_asked_again(said: str) -> None:
    person = Person(said, "1")
    run = asking(person, question="Go on?", choices=["no", "not now"])
    assert run.outputs[NODE] == {"answer": "no"}
    assert person.questions[1][0] == f"“{said}” is none of the choices. Go on?"


def test_a_number_that_could_mean_two_choices_is_asked_again() -> None:
    assert asking(Person("1", "20"), question="?", choices=["20", "10"]).outputs[NODE]["answer"] == "20"


def test_after_three_bad_answers_it_fails_and_a_resumed_run_asks_anew() -> None:
    first = asking(Person("a", "b", "c"), question="Go on?", choices=["yes", "no"])
    failed = first.ended[VISIT].failure
    assert failed is not None and failed.hint == "the choices: yes, no"
    person = Person("yes")
    assert first.again(answer=person).drive().outputs[NODE] == {"answer": "yes"}
    assert len(person.questions) == 1


def test_without_anybody_to_ask_the_run_pauses() -> None:
    first = Driven(workflow(Node(NODE, "ask", {"question": "Name?"}))).drive()
    assert first.status == "paused"
    assert first.again(answer=Person("Ada")).drive().outputs[NODE] == {"answer": "Ada"}


@pytest.mark.parametrize(
    "params",
    [
        {"question": " "},
        {"question": "?", "choices": ["a", " "]},
        {"question": "?", "choices": ["a", "A"]},
        {"question": "?", "choices": ["a", "a"]},
        {"question": "?", "choices": ["a"], "default": "b"},
    ],
)
def test_bad_params(params: dict[str, Any]) -> None:
    failed = failure("ask", **params)
    assert failed.kind == "validation" and failed.hint
