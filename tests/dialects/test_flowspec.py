"""FlowSpec: what each word means, everything that is refused, and the laws of printing."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pflow.dialects.flowspec import dump, parse
from pflow.documents.source import Source, load
from pflow.documents.yaml_print import dump as as_yaml
from pflow.errors import Place, Problem, UsageError, WorkflowError
from pflow.lang.expression import compile_expr
from pflow.model.value import digest
from pflow.model.workflow import Edge, Input, Policy, Retry, Workflow, meaning

FULL = """\
flow:
  name: review
  version: 2
  description: Looks at files
  nodePacks: [core, tools]
  input:
    path: src
    depth: 3
  policy: {failFast: false, maxConcurrency: 4}

nodes:
  - id: check
    type: condition.equals
    input:
      left: "{{ flow.input.depth }}"
      right: 3
  - id: ask
    type: claude.agent
    when:
      and:
        - equals: {var: check.value, value: true}
        - not: {or: [{equals: {var: "flow.input.path", value: null}}]}
    input:
      promptFile: prompts/ask.md
    config:
      model: small
    policy:
      retry: {maxAttempts: 3, backoffMs: 250}
      timeoutMs: 1500
      continueOnError: true

edges:
  - from: check
    to: ask
    when: {equals: {var: check.value, value: true}}
"""


def read(text: str) -> Workflow:
    return parse(load(text, "flow.yaml"))


def refused(text: str) -> tuple[Problem, ...]:
    with pytest.raises(WorkflowError) as caught:
        read(text)
    return caught.value.problems


def name(workflow: Workflow) -> str:
    return digest(meaning(workflow))


def flow(nodes: str = "[{id: a, type: echo}]", edges: str = "[]", more: str = "") -> str:
    return f"flow: {{name: x{more}}}\nnodes: {nodes}\nedges: {edges}\n"


def with_node(more: str) -> str:
    return flow(f"[{{id: a, type: echo, {more}}}]")


# What the words mean.


def test_the_flow() -> None:
    """Its name, version, packs and policy become the workflow's; inputs are found at flow.input."""
    workflow = read(FULL)
    assert (workflow.name, workflow.version, workflow.description) == ("review", "2", "Looks at files")
    assert workflow.packs == ("core", "tools")
    assert (workflow.fail_fast, workflow.width) == (False, 4)
    assert workflow.inputs == (
        Input("depth", default=3, place=Place("flow.yaml", 8, 5)),
        Input("path", default="src", place=Place("flow.yaml", 7, 5)),
    )
    assert workflow.input_path == ("flow", "input")
    assert workflow.open_inputs
    assert (workflow.dialect, workflow.syntax, workflow.scheduler) == ("flowspec", "mustache", "topological")
    assert (workflow.file, workflow.text) == ("flow.yaml", FULL)


def test_nodes() -> None:
    """Input and config are params, milliseconds are seconds, and every part knows its place."""
    check, ask = read(FULL).nodes
    assert check.params == {"left": "{{ flow.input.depth }}", "right": 3}
    assert check.policy == Policy()
    assert ask.type == "claude.agent"
    assert ask.params == {"prompt_file": "prompts/ask.md", "model": "small"}
    assert ask.policy == Policy(retry=Retry(attempts=3, delay=0.25), timeout=1.5, tolerate=True)
    assert ask.place == Place("flow.yaml", 17, 5)
    assert ask.places == {
        "type": Place("flow.yaml", 18, 11),
        "guard": Place("flow.yaml", 19, 5),
        "params.prompt_file": Place("flow.yaml", 24, 7),
        "params.model": Place("flow.yaml", 26, 7),
    }


def test_edges() -> None:
    guard = ["same", ["path", "check", "value"], ["value", True]]
    assert read(FULL).edges == (Edge("check", "ask", guard=guard, place=Place("flow.yaml", 33, 5)),)


def test_defaults() -> None:
    """What is left out, and what is left empty, has its default."""
    workflow = read(
        "flow:\n  name: x\n  input:\n  policy:\nnodes:\n  - {id: a, type: echo, input: , policy: }\nedges: []"
    )
    assert (workflow.version, workflow.width, workflow.fail_fast, workflow.packs) == ("1", 1, True, ())
    assert workflow.nodes[0].policy == Policy()


@pytest.mark.parametrize("version", ["1", '"1"', "null"])
def test_the_version_is_text(version: str) -> None:
    assert read(flow(more=f", version: {version}")).version == "1"
    assert read(flow(more=", version: 1.5")).version == "1.5"
    assert read(flow(more=", version: 1.0.2")).version == "1.0.2"


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        ("{equals: {var: a.n, value: 1}}", True),
        ("{equals: {var: a.n, value: '1'}}", False),
        ("{equals: {var: a.yes, value: yes}}", True),
        ("{equals: {var: a.none, value: null}}", True),
        ("{equals: {var: a.missing, value: null}}", False),
        ("{not: {equals: {var: a.missing, value: 1}}}", True),
        ("{equals: {var: 'a.list[1]', value: {k: [2]}}}", True),
        ("{equals: {var: a.list.length, value: 2}}", True),
        ("{equals: {var: flow.input.x, value: 5}}", True),
        ("{and: [{equals: {var: a.n, value: 1}}, {equals: {var: a.n, value: 2}}]}", False),
        ("{or: [{equals: {var: a.n, value: 1}}, {equals: {var: a.n, value: 2}}]}", True),
        ("{and: []}", True),
        ("{or: []}", False),
    ],
)
def test_conditions(when: str, holds: bool) -> None:
    """Equality is JSON's, and an unresolved variable equals nothing."""
    values = {"a": {"n": 1, "yes": "yes", "none": None, "list": [0, {"k": [2]}]}, "flow": {"input": {"x": 5}}}
    guard = read(with_node(f"when: {when}")).nodes[0].guard
    assert guard is not None
    assert compile_expr(guard).test(values) is holds


def test_prompt_file_is_a_word_of_agents_only() -> None:
    """Another type may have a param of that name."""
    for kind, key in (("agent", "prompt_file"), ("core/agent@2", "prompt_file"), ("reagent", "promptFile")):
        assert list(read(flow(f"[{{id: a, type: {kind}, input: {{promptFile: p.md}}}}]")).nodes[0].params) == [key]


def test_json_is_a_flowspec_document_too() -> None:
    document = {"flow": {"name": "x"}, "nodes": [{"id": "a", "type": "echo"}], "edges": []}
    workflow = parse(load(json.dumps(document, indent=1), "flow.json"))
    assert name(workflow) == name(read(flow()))
    assert workflow.nodes[0].place == Place("flow.json", 6, 3)


# What is refused.


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("nodes: []\nedges: []", 'the document needs "flow", which is missing', 1, 1),
        ("flow: x\nnodes: []\nedges: []", '"flow" must be a mapping, not text', 1, 7),
        ("flow: {}\nnodes: []\nedges: []", '"flow" needs "name", which is missing', 1, 7),
        ("flow: {name: ' '}\nnodes: []\nedges: []", '"name" must not be empty', 1, 14),
        ("flow: {name: 5}\nnodes: []\nedges: []", '"name" must be text, not a number', 1, 14),
        ("flow: {name: x}\nnodes: []", 'the document needs "edges", which is missing', 1, 1),
        ("flow: {name: x}\nedges: []", 'the document needs "nodes", which is missing', 1, 1),
        (flow(edges=""), '"edges" must be a list, not nothing (null)', 3, 7),
        (flow(nodes="{a: 1}"), '"nodes" must be a list, not a mapping', 2, 8),
        (flow(nodes="[a]"), "nodes[0] must be a mapping, not text", 2, 9),
        (flow() + "output: x", 'unknown key "output"', 4, 1),
        (flow(more=", nodepacks: []"), '"flow" has no key "nodepacks"', 1, 17),
        (flow(more=", nodePacks: core"), '"nodePacks" must be a list, not text', 1, 28),
        (flow(more=", nodePacks: [1]"), "nodePacks[0] must be text, not a number", 1, 29),
        (flow(more=", input: [a]"), '"input" must be a mapping, not a list', 1, 24),
        (flow(more=", version: .nan"), '"version" must be text, not a number', 1, 26),
        (flow(more=", version: true"), '"version" must be text, not true or false', 1, 26),
        (flow(more=", policy: {failFast: yes}"), '"failFast" must be true or false, not text', 1, 36),
        (flow(more=", policy: {maxConcurrency: 0}"), '"maxConcurrency" must be at least 1, not 0', 1, 42),
        (flow(more=", policy: {maxConcurrency: 1.5}"), '"maxConcurrency" must be a whole number, not 1.5', 1, 42),
        (flow(nodes="[{type: echo}]"), 'nodes[0] needs "id", which is missing', 2, 9),
        (flow(nodes="[{id: a}]"), 'nodes[0] needs "type", which is missing', 2, 9),
        (flow(nodes="[{id: a, type: ''}]"), '"type" must not be empty', 2, 23),
        (flow(nodes="[{id: 1, type: x}]"), '"id" must be text, not a number', 2, 14),
        (flow(nodes="[{id: flow, type: x}]"), '"flow" cannot be an id: it names the flow itself', 2, 14),
        (with_node("inputs: {}"), 'nodes[0] has no key "inputs"', 2, 29),
        (with_node("input: x"), '"input" must be a mapping, not text', 2, 36),
        (with_node("input: {k: 1}, config: {k: 2}"), '"k" is given twice', 2, 53),
        (with_node("config: {k: [x, '{{y}}']}"), '"config" is static: nothing is bound in it', 2, 45),
        (with_node("policy: []"), '"policy" must be a mapping, not a list', 2, 37),
        (with_node("policy: {retry: 3}"), '"retry" must be a mapping, not a number', 2, 45),
        (with_node("policy: {retry: {}}"), '"retry" needs "maxAttempts", which is missing', 2, 45),
        (with_node("policy: {retry: {maxAttempts: 0}}"), '"maxAttempts" must be at least 1, not 0', 2, 59),
        (with_node("policy: {retry: {maxAttempts: '3'}}"), '"maxAttempts" must be a whole number, not text', 2, 59),
        (
            with_node("policy: {retry: {maxAttempts: true}}"),
            '"maxAttempts" must be a whole number, not true or false',
            2,
            59,
        ),
        (with_node("policy: {timeoutMs: 0}"), '"timeoutMs" must be above 0, not 0', 2, 49),
        (with_node("policy: {timeoutMs: .inf}"), '"timeoutMs" must be at most 1,000,000,000,000, not inf', 2, 49),
        (with_node("policy: {timeoutMs: .nan}"), '"timeoutMs" must be above 0, not nan', 2, 49),
        (with_node("when: "), '"when" must be a mapping, not nothing (null)', 2, 35),
        (with_node("when: {}"), "a condition is one of equals, not, and, or; here is none", 2, 35),
        (
            with_node("when: {not: {}, or: []}"),
            'a condition is one of equals, not, and, or; here is "not" and "or"',
            2,
            35,
        ),
        (with_node("when: {eq: {var: a, value: 1}}"), '"when" has no key "eq"', 2, 36),
        (with_node("when: {equals: x}"), '"equals" must be a mapping, not text', 2, 44),
        (with_node("when: {equals: {value: 1}}"), '"equals" needs "var", which is missing', 2, 44),
        (with_node("when: {equals: {var: a}}"), '"equals" needs "value", which is missing', 2, 44),
        (with_node("when: {equals: {var: 1, value: 1}}"), '"var" must be text, not a number', 2, 50),
        (with_node("when: {equals: {var: '{{a}}', value: 1}}"), '"{{a}}" is not a path', 2, 50),
        (with_node("when: {equals: {var: a..b, value: 1}}"), '"a..b" is not a path', 2, 50),
        (with_node("when: {equals: {var: a b, value: 1}}"), '"a b" is not a path', 2, 50),
        (with_node("when: {and: {}}"), '"and" must be a list, not a mapping', 2, 41),
        (with_node("when: {not: []}"), '"not" must be a mapping, not a list', 2, 41),
        (flow(edges="[{to: a}]"), 'edges[0] needs "from", which is missing', 3, 9),
        (flow(edges="[{from: a, to: [b]}]"), '"to" must be text, not a list', 3, 23),
        (flow(edges="[{from: a, to: b, action: x}]"), 'edges[0] has no key "action"', 3, 26),
        (flow(edges="[{from: a, to: b, when: {not: 1}}]"), '"not" must be a mapping, not a number', 3, 38),
    ],
)
def test_what_is_refused(text: str, message: str, line: int, column: int) -> None:
    """Every bad value has its own message at its place, and a hint."""
    problems = refused(text)
    assert all(problem.hint for problem in problems)
    found = [(p.message, p.place.line, p.place.column) for p in problems]
    assert found == [(message, line, column)]


@pytest.mark.parametrize("node_id", ["1a", "a-b", "a.b", "é", "a b", "a\n"])
def test_ids_are_names(node_id: str) -> None:
    """Paths start with them, so they are letters, digits and underscores."""
    (problem,) = refused(flow(nodes=json.dumps([{"id": node_id, "type": "echo"}])))
    assert "cannot be an id" in problem.message
    assert "for example" in problem.hint


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ("prompt: x, promptFile: y", 1),
        ("prompt: x, messages: []", 1),
        ("prompt: x, messages: [], promptFile: y", 2),
        ("promptFile: 5", 1),
        ("promptFile: x, prompt_file: y", 1),
    ],
)
def test_an_agent_has_one_prompt(given: str, count: int) -> None:
    assert len(refused(flow(f"[{{id: a, type: agent, input: {{{given}}}}}]"))) == count


def test_all_problems_are_told_at_once() -> None:
    """In order of place, each with the node it belongs to, and with a suggestion for a misspelt key."""
    problems = refused(
        "flow: {nmae: x}\n"
        "nodes:\n"
        "  - {id: a, type: 5}\n"
        "  - {id: b, typ: echo, policy: {timeoutMs: soon}}\n"
        "edges:\n"
        "  - {from: a}\n"
    )
    assert [(p.place.line, p.node_id) for p in problems] == [
        (1, ""),
        (1, ""),
        (3, "a"),
        (4, "b"),
        (4, "b"),
        (4, "b"),
        (6, ""),
    ]
    assert 'did you mean "name"?' in problems[1].hint
    assert 'did you mean "type"?' in problems[4].hint
    assert all(problem.hint for problem in problems if problem.code in ("unknown-key", "missing-key"))


def test_problems_are_bounded() -> None:
    """A document that is wrong throughout is still refused at once."""
    assert len(refused(flow(nodes="[" + "{idd: a, tyype: b}," * 2000 + "]"))) == 100


# Laws.

names = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,6}\Z").filter(lambda text: text != "flow")
texts = st.text(st.characters(codec="utf-8"), max_size=12)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | texts
    | st.sampled_from(["yes", "{{a.b}}", "1", "a\nb\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
keys = texts.filter(lambda text: "prompt" not in text)
paths = st.lists(names | st.integers(0, 99).map(str), max_size=3).flatmap(
    lambda parts: st.builds(
        lambda root, end: ".".join([root, *parts]) + end, names, st.sampled_from(["", "[0]", '["a b"]'])
    )
)
conditions = st.recursive(
    st.fixed_dictionaries({"equals": st.fixed_dictionaries({"var": paths, "value": values})}),
    lambda inner: (
        st.fixed_dictionaries({"not": inner})
        | st.fixed_dictionaries({"and": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"or": st.lists(inner, max_size=3)})
    ),
    max_leaves=4,
)
milliseconds = st.integers(1, 10**12) | st.floats(1e-3, 1e9)
retries = st.fixed_dictionaries({"maxAttempts": st.integers(1, 99)}, optional={"backoffMs": milliseconds | st.just(0)})
policies = st.fixed_dictionaries(
    {}, optional={"retry": retries, "timeoutMs": milliseconds, "continueOnError": st.booleans()}
)
configs = st.dictionaries(keys.map(lambda text: "c" + text), st.integers() | st.just("static"), max_size=2)
inputs = st.dictionaries(keys.map(lambda text: "i" + text), values, max_size=3)
nodes = st.fixed_dictionaries(
    {"id": names, "type": st.sampled_from(["echo", "control.if"])},
    optional={"input": inputs, "config": configs, "when": conditions, "policy": policies},
) | st.fixed_dictionaries(
    {"id": names, "type": st.just("agent"), "input": st.fixed_dictionaries({"promptFile": texts})},
)
edges = st.fixed_dictionaries({"from": names, "to": names}, optional={"when": conditions})
flows = st.fixed_dictionaries(
    {"name": texts.filter(str.strip)},
    optional={
        "version": st.integers(0, 99) | texts | st.floats(0, 9),
        "description": texts,
        "input": st.dictionaries(texts, values, max_size=4),
        "nodePacks": st.lists(texts, max_size=2),
        "policy": st.fixed_dictionaries({}, optional={"failFast": st.booleans(), "maxConcurrency": st.integers(1, 99)}),
    },
)
documents = st.fixed_dictionaries(
    {"flow": flows, "nodes": st.lists(nodes, max_size=3), "edges": st.lists(edges, max_size=3)}
)


@given(documents)
def test_printing_keeps_the_meaning(document: dict[str, Any]) -> None:
    """Parse, print, parse: the same workflow; and printing again gives the same text."""
    first = parse(Source("flow.yaml", document))
    text = dump(first)
    second = read(text)
    assert name(first) == name(second)
    assert dump(second) == text
    assert [set(node.params) for node in first.nodes] == [set(node.params) for node in second.nodes]


@given(documents, st.randoms(use_true_random=False))
def test_cosmetic_edits_keep_the_meaning(document: dict[str, Any], random: Any) -> None:
    """Comments, descriptions, the order of keys, quotes and layout are no part of a digest."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in random.sample(list(value), len(value))}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    edited = copy.deepcopy(document)
    edited["flow"]["description"] = "another one"
    text = "# a comment\n" + as_yaml(shuffled(edited)) + "# another\n"
    assert name(read(text)) == name(parse(Source("elsewhere.yaml", document)))


@given(documents)
def test_edits_that_mean_something_change_the_digest(document: dict[str, Any]) -> None:
    before = name(parse(Source("x", document)))
    document["nodes"].append({"id": "one_more", "type": "echo"})
    assert name(parse(Source("x", document))) != before


WORDS = [
    "flow", "nodes", "edges", "name", "version", "input", "nodePacks", "policy", "failFast", "maxConcurrency", "id",
    "type", "config", "when", "retry", "maxAttempts", "backoffMs", "timeoutMs", "continueOnError", "from", "to",
    "equals", "not", "and", "or", "var", "value", "promptFile", "agent", "a", "a.b", "{{a}}", "a[", "",
]  # fmt: skip
wild = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*WORDS, 10**400]) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=20,
)


def damaged(document: Any, path: list[int], value: Any) -> Any:
    """A document with a wild value somewhere inside."""
    if not path or not isinstance(document, (dict, list)) or not document:
        return value
    key = list(document)[path[0] % len(document)] if isinstance(document, dict) else path[0] % len(document)
    changed = copy.copy(document)
    changed[key] = damaged(document[key], path[1:], value)
    return changed


@given(wild | st.builds(damaged, documents, st.lists(st.integers(0, 9), min_size=1, max_size=6), wild))
def test_any_data_are_read_or_refused(data: Any) -> None:
    """Nothing but a ``WorkflowError`` ever comes out; what is read can be printed."""
    try:
        workflow = parse(Source("flow.yaml", data))
    except WorkflowError as error:
        assert error.problems
    else:
        assert name(read(dump(workflow))) == name(workflow)


# Printing.


def test_printed_documents_are_pleasant() -> None:
    """Sections are apart, long texts are blocks, and defaults are left out."""
    text = dump(read(flow('[{id: a, type: echo, input: {text: "one\\ntwo\\n"}, config: {n: 1}}]')))
    assert text == (
        "flow:\n  name: x\n\n"
        "nodes:\n- id: a\n  type: echo\n  input:\n    text: |\n      one\n      two\n  config:\n    n: 1\n\n"
        "edges: []\n"
    )


def test_another_dialect_is_not_printed() -> None:
    with pytest.raises(UsageError):
        dump(Workflow("x", "pflow", ()))
    with pytest.raises(UsageError):
        dump(Workflow("x", "flowspec", (), (Edge("a", "b", on="error"),)))
    with pytest.raises(UsageError):
        dump(Workflow("x", "flowspec", (), (Edge("a", "b", guard=["len", ["value", 1]]),)))
