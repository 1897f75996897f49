"""What is taken out of whatever is shown: known secrets wherever they stand, and what goes by a telling name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.model import conversation
from pflow.model.redact import HIDDEN, Redactor, known_secrets, looks_secret

KEY = "sesame-open"


@pytest.mark.parametrize(
    "name",
    [
        "password", "PASSWORD", "db_passwd", "secret", "client_secret", "Authorization", "Cookie", "Set-Cookie",
        "token", "api_key", "API-KEY", "apikey", "my.token", "x-auth", "auth_header", "private_key", "privatekey",
        "credentials", "GITHUB_TOKEN",
    ],
)  # fmt: skip
def test_names_that_tell(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "tokens",
        "input_tokens",
        "max_tokens",
        "author",
        "authentic",
        "monkey",
        "keys",
        "key",
        "tokenizer",
        "passage",
    ],
)
def test_names_that_only_look_like_it(name: str) -> None:
    assert not looks_secret(name)


def test_a_known_secret_is_hidden_wherever_it_stands() -> None:
    redact = Redactor([KEY])
    assert redact.text(f"curl -H {KEY} {KEY}!") == f"curl -H {HIDDEN} {HIDDEN}!"
    assert redact.value({"a": [KEY, {"b": f"<{KEY}>"}], "c": 1}) == {"a": [HIDDEN, {"b": f"<{HIDDEN}>"}], "c": 1}


def test_of_two_secrets_the_longer_one_is_hidden_whole() -> None:
    for secrets in (["sesame", "sesame-open"], ["sesame-open", "sesame"]):
        assert Redactor(secrets).text("say sesame-open or sesame") == f"say {HIDDEN} or {HIDDEN}"


def test_what_is_too_short_to_be_a_secret_hides_nothing() -> None:
    assert Redactor(["short", ""]).text("in short: no") == "in short: no"
    assert Redactor(["longer"]).text("no longer") == f"no {HIDDEN}"


def test_a_secret_is_no_pattern() -> None:
    assert Redactor(["a.c+d$(", "......"]).text("abcccd$( a.c+d$( ......") == f"abcccd$( {HIDDEN} {HIDDEN}"


def test_a_text_under_a_telling_name_is_hidden_whatever_it_is() -> None:
    value = {"password": "x", "nested": {"api_key": "y"}, "token": "", "secret": 5, "input_tokens": "7"}
    assert Redactor().value(value) == {
        "password": HIDDEN, "nested": {"api_key": HIDDEN}, "token": "", "secret": 5, "input_tokens": "7",
    }  # fmt: skip


def test_a_conversation_that_holds_a_secret_is_shown_as_data_without_it() -> None:
    talk = conversation.new("c", [{"role": "user", "content": f"it is {KEY}"}])
    (message,) = Redactor([KEY]).value(talk)["message_history"]
    assert message["content"] == f"it is {HIDDEN}"


VALUES = st.recursive(
    st.one_of(st.none(), st.integers(), st.text("ab", max_size=4), st.just(f"x{KEY}y")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "token", "b"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(VALUES)
def test_nothing_that_is_shown_holds_a_known_secret_and_what_was_given_is_left_as_it_was(value: Any) -> None:
    before = repr(value)
    shown = Redactor([KEY]).value(value)
    assert KEY not in repr(shown) and repr(value) == before
    if repr(shown) == before and KEY not in before:
        assert shown is value
    assert Redactor([KEY]).value(shown) == shown


def test_where_secrets_come_from() -> None:
    found = known_secrets({"ANY": "from settings"}, {"MY_TOKEN": "from env", "HOME": "/root"}, ["given", 5, None])
    assert found == ["from settings", "from env", "given"]
