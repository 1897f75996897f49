"""Conversations as values: equality, what may be written where, and the data that they are made from."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.model import conversation
from pflow.model.conversation import Message, Threads, brief, from_data, message_of, new, spelled_out

ROLES = st.sampled_from(["user", "assistant"])
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": st.text(max_size=3)}), max_size=6)


def said(*contents: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content, "id": content} for content in contents]


def contents(made: Any) -> list[str]:
    return [message.content for message in made.message_history]


def test_two_conversations_are_equal_if_they_say_the_same_however_they_came_about() -> None:
    at_once, by_steps = new("c", said("a", "b")), new("c").adding(said("a")).adding(said("b"))
    assert at_once == by_steps and hash(at_once) == hash(by_steps) and at_once.key != by_steps.key
    assert at_once != new("c", said("a")) and at_once != new("d", said("a", "b"))
    assert at_once != at_once.whole()


def test_an_empty_conversation_is_something() -> None:
    empty = new("c")
    assert empty and len(empty) == 0 and empty.last is None
    assert repr(empty.adding(said("a"))) == "<main context 'c', 1 messages>"


def test_two_that_grow_from_the_same_one_do_not_see_each_other() -> None:
    trunk = new("c", said("a"))
    left, right = trunk.adding(said("l")), trunk.adding(said("r"))
    assert (contents(trunk), contents(left), contents(right)) == (["a"], ["a", "l"], ["a", "r"])
    assert contents(left.adding(said("l2"))) == ["a", "l", "l2"] and contents(right) == ["a", "r"]


def test_setting_what_is_set_already_changes_nothing() -> None:
    one = new("c", model="m")
    assert one.setting(model="m") is one
    other = one.setting(model="n", provider="p")
    assert (other.model, other.provider, one.model, one.provider) == ("n", "p", "m", "")


@given(MESSAGES, MESSAGES)
def test_another_history_takes_the_place_of_the_first_and_what_is_the_same_is_not_written_again(
    old: list[dict[str, Any]], new_: list[dict[str, Any]]
) -> None:
    one = new("c", [{**message, "id": f"{n}"} for n, message in enumerate(old)])
    wanted = [{**message, "id": f"{n}"} for n, message in enumerate(new_)]
    made = one.with_history(wanted)
    assert made.message_history == tuple(message_of(message, "") for message in wanted)
    if made is not one:
        assert len(made.step.add) <= len(wanted) and made.base is one
    assert made.with_history(made.message_history) is made


def test_only_the_messages_between_the_same_beginning_and_the_same_end_are_written() -> None:
    one = new("c", said("a", "b", "c", "d"))
    made = one.with_history(said("a", "x", "y", "c", "d"))
    assert (made.step.at, made.step.drop, [message.content for message in made.step.add]) == (1, 1, ["x", "y"])


def test_an_id_that_is_not_there_is_not_found() -> None:
    one = new("c", said("a", "b"))
    assert (one.find("b"), one.find("z")) == (1, -1)
    assert one.without(["z"]) is one and contents(one.without(["a"])) == ["b"]


def test_more_messages_may_come_first() -> None:
    assert contents(new("c", said("b")).adding(said("a1", "a2"), "prepend")) == ["a1", "a2", "b"]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"role": "robot", "content": "x"}, "a message's role is user or assistant, not 'robot'"),
        ({"content": "x"}, "a message's role is user or assistant, not None"),
        ({"role": "user"}, "a message's content is text, not NoneType"),
        ({"role": "user", "content": ["x"]}, "a message's content is text, not list"),
    ],
)
def test_a_message_that_is_none_says_why(message: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        message_of(message, "1")


def test_a_message_has_an_id_and_a_priority_though_none_were_given() -> None:
    assert message_of({"role": "system", "content": "x"}, "1") == Message("1", "system", "x", False, 50)
    given_ = {"role": "user", "content": "x", "id": 7, "pinned": 1, "priority": 0}
    assert message_of(given_, "1") == Message("7", "user", "x", True, 0)


@pytest.mark.parametrize("name", ["context_id", "_log", "anything"])
def test_nothing_about_it_can_be_set(name: str) -> None:
    with pytest.raises(AttributeError, match=f'not "{name} ="'):
        setattr(new("c"), name, "x")


def test_data_from_elsewhere_need_not_be_complete() -> None:
    assert from_data({}).whole() == new("main").whole()
    assert from_data({"context_id": "", "model": None}).context_id == "main"
    both = from_data({"context_id": "snake", "contextId": "camel", "systemInstructions": "s"})
    assert (both.context_id, both.system_instructions) == ("snake", "s")


def test_it_is_shown_without_its_messages_and_spelled_out_with_them_at_any_depth() -> None:
    one = new("c", said("a"), model="m")
    value = {"x": [one, 1], "y": {"z": one}, "t": (one,)}
    told = {"context_id": "c", "context_type": "main", "provider": "", "model": "m", "messages": 1}
    assert brief(value) == {"x": [told, 1], "y": {"z": told}, "t": (one,)}
    assert spelled_out(value)["y"]["z"] == one.whole()


def test_what_is_no_conversation_cannot_be_written_as_one() -> None:
    for write in (conversation.whole, Threads().encode):
        with pytest.raises(TypeError, match="a value of type set cannot be written"):
            write({1})


def test_a_file_holds_each_step_once_however_many_conversations_share_it() -> None:
    threads = Threads()
    trunk = new("c", said("a")).adding(said("b"))
    first = threads.encode(trunk)
    left = threads.encode(trunk.adding(said("l")))
    assert (first["base"], len(first["steps"])) == ("", 2)
    assert (left["base"], len(left["steps"])) == (trunk.key, 1)
    assert threads.encode(trunk) == {"__type": "conversation", "key": trunk.key}
