"""Contexts: immutable, shared in memory, written as steps, changed by seven operations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.errors import NodeError
from pflow.model import conversation
from pflow.model.conversation import Conversation, Threads, from_data
from pflow.nodes.graph_api.flow import Contexts, handle

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.text(max_size=3)),
        st.tuples(st.just("set"), st.sampled_from(["m1", "m2"])),
        st.tuples(st.just("inject"), st.text(min_size=1, max_size=3)),
        st.tuples(st.just("remove"), st.integers(0, 5)),
        st.tuples(st.just("update"), st.integers(0, 5)),
        st.tuples(st.just("branch"), st.integers(0, 5)),
    ),
    max_size=15,
)


class Here:
    """What the operations need of a flow."""

    node_id, visit = "n", "n#1"


API = Contexts(Here())  # type: ignore[arg-type]


def walked(changes: Any) -> list[Conversation]:
    made = [API.create(provider="p", model="m", system_instructions="s")]
    for what, value in changes:
        at = made[-1]
        ids = [message.id for message in at.message_history]
        if what == "add":
            made.append(API.add_message(at, "user", value))
        elif what == "set":
            made.append(API.update(at, model=value))
        elif what == "inject":
            made.append(API.inject_pair(at, value, value + "!", pinned=True))
        elif what == "remove":
            made.append(API.remove_messages(at, ids[value : value + 1]))
        elif what == "update" and ids:
            made.append(API.update_message(at, ids[value % len(ids)], content="changed"))
        elif what == "branch":
            made.append(made[value % len(made)])
    return made


@given(CHANGES)
def test_no_change_reaches_an_earlier_context(changes: Any) -> None:
    made = walked(changes)
    assert [one.whole() for one in made] == [one.whole() for one in walked(changes)]
    before = [one.whole() for one in made]
    API.add_messages(made[-1], [{"role": "user", "content": "more"}])
    API.add_messages(made[0], [{"role": "user", "content": "other"}])
    assert [one.whole() for one in made] == before


@given(CHANGES)
def test_what_is_written_is_read_again_whatever_came_before(changes: Any) -> None:
    written, read = Threads(), Threads()
    encode = msgspec.json.Encoder(enc_hook=written.encode).encode
    for one in walked(changes):
        line = encode({"context": one, "mine": {"__type": "dict", "value": {"__type": "conversation"}}})
        written.written()
        back = read.decode(msgspec.json.decode(line))
        assert back["context"].whole() == one.whole() and back["context"].key == one.key
        assert back["mine"] == {"__type": "dict", "value": {"__type": "conversation"}}


def test_a_record_that_was_written_in_another_way_is_forgotten() -> None:
    threads = Threads()
    one = API.add_message(API.create(), "user", "hi")
    first = threads.encode(one)
    threads.dropped()
    assert threads.encode(one) == first and "steps" in first
    threads.written()
    assert "steps" not in threads.encode(one)


@given(CHANGES)
def test_plain_data_and_back(changes: Any) -> None:
    one = walked(changes)[-1]
    assert from_data(one.whole()).whole() == one.whole()


def test_contexts_do_not_change() -> None:
    one = API.create()
    with pytest.raises(AttributeError, match="does not change"):
        one.model = "x"


def test_an_id_makes_adding_idempotent_and_updates_in_place() -> None:
    one = API.add_message(API.create(), "user", "hi", id="a")
    one = API.add_message(one, "assistant", "ho")
    assert API.add_message(one, "user", "hi", id="a") is one
    changed = API.add_message(one, "user", "hello", {"id": "a", "pinned": True, "priority": 70})
    assert [(m.id == "a", m.content, m.pinned, m.priority) for m in changed.message_history] == [
        (True, "hello", True, 70),
        (False, "ho", False, 50),
    ]


def test_a_pair_is_injected_before_or_after_and_again_in_place() -> None:
    one = API.add_message(API.create(), "user", "hi")
    before = API.inject_pair(one, "q", "a")
    after = API.inject_pair(one, "q", "a", {"mode": "append", "id_prefix": "x"})
    assert [message.content for message in before.message_history] == ["q", "a", "hi"]
    assert [message.id for message in after.message_history][1:] == ["x-user", "x-assistant"]
    again = API.inject_pair(API.add_message(before, "user", "more"), "q2", "a2", pinned=True, priority=90)
    assert [message.content for message in again.message_history] == ["q2", "a2", "hi", "more"]
    assert again.message_history[0].pinned and again.message_history[0].priority == 90


def test_messages_are_removed_and_updated_by_id() -> None:
    one = API.add_messages(API.create(), [{"role": "user", "content": str(n), "id": str(n)} for n in range(4)])
    assert [m.id for m in API.remove_messages(one, ["1", "3", "nobody"]).message_history] == ["0", "2"]
    assert API.update_message(one, "2", {"content": "two"}).message_history[2].content == "two"
    with pytest.raises(NodeError, match="no message"):
        API.update_message(one, "nobody", content="x")


def test_update_takes_fields_and_a_history_and_nothing_else() -> None:
    one = API.update(API.create(), {"model": "m"}, message_history=[{"role": "user", "content": "x"}])
    assert one.model == "m" and [message.content for message in one.message_history] == ["x"]
    with pytest.raises(NodeError, match="temperature"):
        API.update(one, temperature=1)


def test_a_window_keeps_pinned_messages_by_priority_then_the_newest() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": str(n)} for n in range(10)]
    messages[0] |= {"pinned": True, "priority": 10}
    messages[1] |= {"pinned": True, "priority": 90}
    messages[4] |= {"pinned": True, "priority": 90}
    one = API.add_messages(API.create(), messages)
    assert [message.content for message in one.window(5)] == ["0", "1", "4", "8", "9"]
    assert [message.content for message in one.window(2)] == ["1", "4"]
    assert one.window(10) == one.message_history


def test_n_turns_take_the_room_of_n_messages() -> None:
    one = API.create()
    chain = [one]
    for n in range(200):
        one = API.add_message(one, "user", str(n))
        chain.append(one)
    assert len({id(each._log) for each in chain}) == 1
    assert [len(each) for each in chain] == list(range(201))


def test_a_message_must_be_one() -> None:
    with pytest.raises(ValueError, match="role"):
        API.add_message(API.create(), "robot", "hi")
    with pytest.raises(ValueError, match="text"):
        API.add_messages(API.create(), [{"role": "user", "content": 5}])


@pytest.mark.parametrize(
    ("given_", "canonical"),
    [
        (None, "context"), ("", "context"), ("contextIn", "context"), ("context-out", "context"), ("ctx", "context"),
        ("dataIn", "data"), ("DATA_OUT", "data"), ("value", "data"), ("output", "data"), ("toolsIn", "tools"),
        ("toolsOut", "tools"), ("plan-context", "plan-context"), ("userMessage", "userMessage"),
    ],
)  # fmt: skip
def test_handles_have_aliases(given_: str | None, canonical: str) -> None:
    assert handle(given_) == canonical


def test_conversations_know_camel_case_from_elsewhere() -> None:
    one = from_data({"contextId": "c", "contextType": "isolated", "messageHistory": [{"role": "user", "content": "x"}]})
    assert one.context_id == "c" and one.context_type == "isolated" and len(one) == 1
    assert conversation.whole(one)["context_id"] == "c"
