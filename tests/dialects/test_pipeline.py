from __future__ import annotations

from typing import Any

import pytest

from pflow.dialects import pipeline
from pflow.errors import UsageError, WorkflowError
from pflow.model.workflow import Workflow
from pflow.nodes import node
from pflow.nodes.registry import Registry


@node("fetch_url", main_in="url", main_out="text", outputs=("text", "title"))
def fetch(url: str, timeout: float = 30) -> dict[str, Any]:
    return {"text": url}


@node("ns/summarize", version="2", main_in="text", main_out="summary", outputs=("summary",))
def summarize(text: str, words: int = 10, loud: bool = False) -> dict[str, Any]:
    return {"summary": text}


def parse(*words: str) -> Workflow:
    return pipeline.parse(words, Registry([fetch, summarize], installed=False))


@pytest.mark.parametrize(
    "words",
    [
        ("FetchURL --url X --retries 3 >> ns/summarize --words=5 --loud",),
        ("fetch-url --url X --retries 3>>ns/summarize@2 --words 5 --loud",),
        ("fetch_url", "--url", "X", "--retries", "3", ">>", "ns/summarize", "--words", "5", "--loud"),
    ],
)
def test_directives_are_kept_apart_from_params_and_nodes_are_connected(words: tuple[str, ...]) -> None:
    flow = parse(*words)
    first, second = flow.nodes
    assert first.params == {"url": "X"} and first.policy.retry.attempts == 4
    assert second.params == {"text": f"${{{first.id}.text}}", "words": 5, "loud": True}
    assert [(edge.source, edge.target) for edge in flow.edges] == [(first.id, second.id)]


def test_a_param_of_its_own_wins_over_a_directive() -> None:
    flow = parse("fetch_url --url X --timeout 5 >> ns/summarize --timeout 7")
    assert flow.nodes[0].params["timeout"] == 5 and flow.nodes[0].policy.timeout is None
    assert "timeout" not in flow.nodes[1].params and flow.nodes[1].policy.timeout == 7


def test_what_is_given_is_not_connected_and_ids_are_unique() -> None:
    flow = parse("fetch_url --url X >> ns/summarize --text Y >> ns/summarize")
    assert [node.id for node in flow.nodes] == ["fetch_url", "ns-summarize", "ns-summarize-2"]
    assert flow.nodes[1].params["text"] == "Y" and flow.nodes[2].params["text"] == "${ns-summarize.summary}"


@pytest.mark.parametrize("words", ["fetch_url --url X >>", ">> fetch_url", "fetch_url >> >> ns/summarize", "a 'b"])
def test_an_arrow_with_nothing_beside_it_is_refused(words: str) -> None:
    with pytest.raises(UsageError):
        parse(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fetch_urll --url X", 'did you mean "fetch_url"'),
        ("fetch_url --ulr X", 'did you mean "--url"'),
        ("fetch_url --url X --retries -1", "from 0 to 100"),
        ("fetch_url --url X --retries lots", "from 0 to 100"),
        ("ns/summarize --text x --timeout 0", "above 0"),
        ("fetch_url X", "not an option"),
    ],
)
def test_what_is_wrong_is_said(words: str, said: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        parse(words)
    assert said in str(caught.value)
