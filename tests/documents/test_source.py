"""Documents: what is read, where it stands, and what is refused; every YAML rule under both of PyYAML's parsers."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pflow.documents import source as source_module
from pflow.documents import yaml_text
from pflow.documents.position import MAX_DEPTH, Malformed
from pflow.documents.source import Source, load
from pflow.documents.yaml_print import dump
from pflow.errors import Place, Problem, WorkflowError

texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.integers() | st.integers(-(10**40), 10**40) | st.floats(allow_nan=False, allow_infinity=False)
tricky = st.sampled_from([
    "yes", "no", "on", "null", "~", "", "true", "0o17", "0x1f", "1e3", ".5", "-", "<<", "1:30", "2024-01-01", "a: b",
    "|", "# x", " x ", "x\n", "\nx", " a\n  b", "{{x}}", "*a", "&a", "!a", "%a", "@a", "x\r\ny", "\ufeff",
    "x\n\x85", "x\n\u2028",
])  # fmt: skip
data = st.recursive(
    st.none() | st.booleans() | numbers | texts | tricky,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | tricky, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(params=["C", "Python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "Python":
        monkeypatch.setattr(yaml, "CBaseLoader", yaml.BaseLoader)
    yield request.param


def read(text: str | bytes, file: str = "flow.yaml") -> Any:
    return load(text, file).data


def refused(text: str | bytes, file: str = "flow.yaml") -> tuple[Problem, ...]:
    with pytest.raises(WorkflowError) as caught:
        load(text, file)
    assert all(problem.message for problem in caught.value.problems)
    return caught.value.problems


def first(text: str | bytes, file: str = "flow.yaml") -> tuple[str, int, int]:
    problem = refused(text, file)[0]
    return problem.message, problem.place.line, problem.place.column


# Values.


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *[
            (word, word)
            for word in ("yes", "no", "on", "off", "y", "n", "Yes", "2024-01-01", "1_000", "1:30", "tRUE", "<<")
        ],
        *[(word, True) for word in ("true", "True", "TRUE")],
        *[(word, False) for word in ("false", "False", "FALSE")],
        *[(word, None) for word in ("null", "Null", "NULL", "~", "")],
        ("17", 17),
        ("017", 17),
        ("-0", 0),
        ("+12", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("-0x1F", "-0x1F"),
        ("1" * 40, int("1" * 40)),
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("1e", "1e"),
        ("0b1", "0b1"),
        ("١", "١"),
        ("'17'", "17"),
        ('"true"', "true"),
        ('"\\u00e9\\n"', "é\n"),
        ("!!str 17", "17"),
        ("! 17", "17"),
        ('!!int "17"', 17),
        ("!!float 1", 1.0),
        ("!!bool 'true'", True),
        ("!!null ''", None),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
        ("|\n  a\n   b\n", "a\n b\n"),
        (">-\n  a\n  b\n", "a b"),
    ],
)
def test_scalars_follow_the_core_schema(parser: str, written: str, value: Any) -> None:
    """What YAML 1.2 calls a number, a boolean or null is one; everything else is text."""
    found = read(f"a: {written}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_not_a_number_is_a_number() -> None:
    assert math.isnan(read("a: .NaN")["a"])


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("1", "1"),
        ("0x10", "16"),
        ("1.0", "1.0"),
        ("true", "true"),
        ("TRUE", "true"),
        ("~", "null"),
        ("yes", "yes"),
        ("-.inf", "-.inf"),
        (".nan", ".nan"),
        ("'<<'", "<<"),
        ('""', ""),
        ("? a\n", "a"),
    ],
)
def test_keys_are_texts(parser: str, written: str, key: str) -> None:
    """A key that is no text becomes the text that the core schema prints for it."""
    assert read(f"{written}: x\n") == {key: "x"}


def test_aliases_repeat_what_they_name(parser: str) -> None:
    """Values and scalar keys may be aliased, and a name may be used again for another value."""
    assert read("a: &x {k: [1]}\nb: *x\nc: &x v\n*x : *x\n") == {"a": {"k": [1]}, "b": {"k": [1]}, "c": "v", "v": "v"}


def test_text_is_decoded() -> None:
    """UTF-8 with and without a mark, and UTF-16 with one, are the same document."""
    for raw in ("é: 1".encode(), "é: 1".encode("utf-8-sig"), "é: 1".encode("utf-16"), "\ufeffé: 1"):
        assert read(raw) == {"é": 1}
        assert load(raw, "x.yaml").key_place(("é",)) == Place("x.yaml", 1, 1)


@pytest.mark.parametrize("file", ["x.yaml", "x.json", "x", "-"])
def test_json_is_told_by_its_content(file: str) -> None:
    """JSON is JSON under any name, with its numbers and escapes."""
    assert read('{"a": [1, 2.5, "\\ud83d\\ude00", null, true]}', file) == {"a": [1, 2.5, "😀", None, True]}


def test_a_mapping_in_braces_may_be_yaml() -> None:
    assert read("{a: yes, b: [1,],}") == {"a": "yes", "b": [1]}
    assert read("{a: yes}", "x") == {"a": "yes"}


def test_json_documents_do_not_import_yaml() -> None:
    """Starting is quick where nothing needs PyYAML."""
    code = "import sys; from pflow.documents import source; source.load('{}', 'x'); assert 'yaml' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Places.

DOCUMENT = """\
# a comment
flow:
  name: x
  list: [1, {k: 'v'}]
"é 😀": &a
  - first
  - k: |
      text
alias: *a
"""


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ((), (2, 1), (2, 1)),
        (("flow",), (3, 3), (2, 1)),
        (("flow", "name"), (3, 9), (3, 3)),
        (("flow", "list", 1, "k"), (4, 17), (4, 14)),
        (("é 😀", 1), (7, 5), (7, 5)),
        (("é 😀", 1, "k"), (7, 8), (7, 5)),
        (("alias",), (9, 8), (9, 1)),
        (("alias", 0), (6, 5), (6, 5)),
        (("flow", "nothing", "below"), (3, 3), (3, 3)),
        (("flow", "list", 7), (4, 9), (4, 9)),
        (("flow", "list", "k"), (4, 9), (4, 9)),
        (("flow", "name", 0), (3, 9), (3, 9)),
    ],
)
def test_places_in_yaml(parser: str, path: tuple[Any, ...], value: tuple[int, int], key: tuple[int, int]) -> None:
    """Each value and key has its line and column; a path that leads nowhere has its nearest parent's."""
    source = load(DOCUMENT, "d.yaml")
    assert source.place(path) == Place("d.yaml", *value)
    assert source.key_place(path) == Place("d.yaml", *key)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_count_every_kind_of_line(end: str) -> None:
    assert load(f"a: 1{end}b: 2{end}", "x").place(("b",)) == Place("x", 2, 4)
    assert load(f'{{"a": 1,{end}"b": 2}}', "x").place(("b",)) == Place("x", 2, 6)


def test_places_without_a_text() -> None:
    """Data made by a program have a file and no lines."""
    assert Source("made", {"a": 1}).place(("a",)) == Place("made")


@given(data, st.sampled_from([None, 1]))
def test_every_part_of_a_json_text_is_found(value: Any, indent: int | None) -> None:
    """Where a part is said to stand, its JSON stands."""
    text = json.dumps(value, indent=indent)
    source = load(text, "x.json")
    lines = text.split("\n")

    def at(place: Place) -> str:
        return "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])

    def check(part: Any, path: tuple[str | int, ...]) -> None:
        decoder = json.JSONDecoder()
        assert decoder.raw_decode(at(source.place(path)))[0] == part
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
            if isinstance(part, dict):
                assert decoder.raw_decode(at(source.key_place((*path, key))))[0] == key
            check(inner, (*path, key))

    check(value, ())


# Refusals.


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a: b: c", 'unexpected ":"', 1, 5),
        ("a:\n\tb: 1", "a tab where indentation is expected", 2, 1),
        ("a: @x", 'a text cannot start with "@"', 1, 4),
        ("a: [1, 2\nb: 3", 'a list is not closed with "]"', 1, 4),
        ("a: {b: 1", 'a mapping is not closed with "}"', 1, 4),
        ('a: "x', "a quoted text is not closed", 1, 4),
        ("a: 'it's'", 'unexpected "s" after a complete value', 1, 8),
        ("a:\n  b: 1\n c: 2", "this line does not fit the ones above", 3, 2),
        ("a: *.py", "an anchor or alias without a name", 1, 5),
        ("a: {{x}}", 'a text that starts with "{{" must be quoted', 1, 4),
        ("a: - 1", 'a list cannot start here ("-")', 1, 4),
        ("a: 1\n---\nb: 2", "the file holds more than one document", 2, 1),
        ("a: !foo 1", 'the tag "!foo" is not known here', 1, 4),
        ("a: !!timestamp 1", 'the tag "!!timestamp" is not known here', 1, 4),
        ("a: !!set {b}", 'the tag "!!set" is not known here', 1, 4),
        ("a: !!int x", '"x" is not what its tag !!int says', 1, 4),
        ("a: !!int true", '"true" is not what its tag !!int says', 1, 4),
        ("b: 1\n<<: {a: 1}", 'merge keys ("<<") are not part of YAML 1.2', 2, 1),
        ("? [a]\n: 1", "a key must be text, not a list", 1, 3),
        ("a: &x {}\n*x : 1", "a key must be text, not a mapping", 2, 1),
        ("a: &x [1, *x]", 'the alias "*x" stands inside the value it names', 1, 11),
        ("a: &x {k: *x}", 'the alias "*x" stands inside the value it names', 1, 11),
        ("a: &xy 1\nb: *xz", 'there is no anchor "xz" before this alias', 2, 4),
        ("a: 1\n'b': 2\n\"a\": 3", 'the key "a" is there twice', 3, 1),
        ("1: a\n'1': b", 'the key "1" is there twice', 2, 1),
        ("a: 1e999", "a number is too large", 1, 4),
        ("a: " + "1" * 5000, "a number is too large", 1, 4),
        ("a: 0x" + "1" * 5000, "a number is too large", 1, 4),
        ("a: \x01", "the character U+0001 cannot stand in YAML", 1, 4),
        ("a: x\u2028y", "the character U+2028 cannot stand in YAML", 1, 5),
        ("# nothing", "the file holds no document", 1, 1),
    ],
)
def test_what_yaml_is_refused(parser: str, text: str, message: str, line: int, column: int) -> None:
    """Each with a message of its own, its place, and a hint."""
    assert first(text) == (message, line, column)
    assert all(problem.hint for problem in refused(text))


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ('{"a": 1,\n "a": 2}', 'the key "a" is there twice', 2, 2),
        ('{"a": 1,\n "\\u0061": 2}', 'the key "a" is there twice', 2, 2),
        ('[{"a": ":", "b": {"a": 1, "a": 2}}]', 'the key "a" is there twice', 1, 27),
        ('{"é": 1,}', "this is not JSON: trailing comma in object", 1, 9),
        ('{"a": 1', "this is not JSON: it ends too early", 1, 8),
        ('{"a": 1} x', "this is not JSON: trailing characters", 1, 10),
        ("{'a': 1}", "this is not JSON: object keys must be strings", 1, 2),
        ('["\\ud800"]', "this is not JSON: half of a surrogate pair", 1, 3),
        ('[1, "1e999", 1e999]', "a number is too large", 1, 14),
        ("key: []", "this is not JSON: invalid character", 1, 1),
    ],
)
def test_what_json_is_refused(text: str, message: str, line: int, column: int) -> None:
    """JSON errors name the place in characters, not in bytes."""
    assert first(text, "x.json") == (message, line, column)
    assert all(problem.hint for problem in refused(text, "x.json"))


def test_all_repeated_keys_are_told() -> None:
    """Reading goes on after one, up to a bound."""
    assert [problem.place.line for problem in refused("a: 1\na: 2\nb: {c: 1, c: 2}\nd: [")] == [2, 3, 4]
    assert len(refused("a: 1\n" * 5000)) == 100


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "the file is empty"),
        (b" \n\t\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"a: 1\n\x00", "the file is not text: it holds a NUL byte"),
        ("a: 1".encode("utf-16-le"), "the file is not text: it holds a NUL byte"),
        (b"a: 1\nb: \xff", "the file is not text: it is not UTF-8 here"),
        (b"\xff\xfea", "the file is not text: it is not UTF-16 here"),
        ("a: \ud800", "the text holds half of a surrogate pair"),
    ],
)
@pytest.mark.parametrize("file", ["x.yaml", "x.json"])
def test_what_is_no_text_is_refused(raw: str | bytes, message: str, file: str) -> None:
    assert first(raw, file)[0] == message


def test_the_place_of_a_bad_byte() -> None:
    assert first("é: 1\né: ".encode() + b"\xff")[1:] == (2, 4)
    assert first(b"a: 1\nb: \x00")[1:] == (2, 4)


def test_a_file_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "MAX_SIZE", 10)
    assert first("a: 12345678")[0].startswith("the file is too large")


def test_a_document_with_too_many_nodes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MAX_NODES", 10)
    assert first("- a\n" * 20) == ("the document has more than 10 nodes", 10, 3)


@pytest.mark.parametrize("deep", [MAX_DEPTH, MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize(
    ("opening", "closing", "file"),
    [
        ("[", "]", "x.json"),
        ('{"a":', "}", "x.json"),
        ("[", "]", "x.yaml"),
        ("{a: ", "}", "x.yaml"),
        ("- ", "", "x.yaml"),
    ],
)
def test_nesting_is_bounded(opening: str, closing: str, file: str, deep: int) -> None:
    """The same depth in JSON and YAML; deeper ones are refused where they go too deep."""
    text = opening * deep + ("0" if deep <= MAX_DEPTH + 1 else "") + closing * deep
    if deep <= MAX_DEPTH:
        load(text, file)
    else:
        message, line, column = first(text, file)
        assert "nested more than" in message
        assert (line, column) == (1, len(opening) * MAX_DEPTH + 1)


def bomb(levels: int, last: str) -> str:
    lines = ["x: &a0 [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join([*lines, last])


@pytest.mark.parametrize("last", ["flow: 1", "deep: {unread: *a8}", "? *a8\n: 1"])
def test_aliases_cannot_grow_without_bound(parser: str, last: str) -> None:
    """Ten lines that stand for a billion nodes are refused at the alias that goes too far."""
    message, line, column = first(bomb(9, last))
    assert "grows beyond 1,000,000 nodes" in message
    assert (line, column) == (6, 45)


def test_long_texts_count_when_they_are_repeated() -> None:
    """A megabyte of text, aliased a thousand times, is as much as many nodes."""
    text = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]"
    assert "grows beyond" in first(text)[0]


def test_aliases_cannot_nest_without_bound(parser: str) -> None:
    """Each line goes one deeper than the one before, although none looks deep."""
    text = "a0: &a0 [0]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 300))
    message, line, _ = first(text)
    assert "nested more than" in message
    assert line == MAX_DEPTH  # the mapping itself is one level


# Laws.


@given(data)
def test_what_is_printed_reads_back(value: Any) -> None:
    """Under both parsers; floats and integers, texts and what looks like something else stay apart."""
    text = dump({"value": value})
    for loader in (yaml.CBaseLoader, yaml.BaseLoader):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml, "CBaseLoader", loader)
            found = read(text)["value"]
        assert json.dumps(found) == json.dumps(value)


@given(data)
def test_json_is_read_alike_by_both_readers(value: Any) -> None:
    """A JSON text is the same document to the JSON reader and, where YAML allows it, to the YAML reader."""
    text = json.dumps({"value": value}, ensure_ascii=False)
    as_json = read(text, "x.json")
    assert as_json == {"value": value}
    try:
        assert yaml_text.parse(text)[0] == as_json
    except Malformed as error:
        assert "U+" in error.faults[0].message  # JSON texts may hold characters that YAML wants escaped


pieces = [
    "a", "b: ", ": ", "- ", "\n", "\n  ", "\n    ", "[", "]", "{", "}", ",", "&x ", "*x", "!t ", "!!str ", "|\n", ">",
    "'", '"', "? ", "# c", "%", "@", "\t", "---\n", "...\n", "<<: ", "1", "null", "\\", "é", "{{", "}}", "\r", "\x85",
]  # fmt: skip
yamlish = st.lists(st.sampled_from(pieces), max_size=30).map("".join)


@given(yamlish | st.text(max_size=40) | st.binary(max_size=40), st.sampled_from(["x.yaml", "x.json", "x"]))
def test_any_text_is_read_or_refused(text: str | bytes, file: str) -> None:
    """Nothing but a ``WorkflowError`` with places ever comes out."""
    for loader in (yaml.CBaseLoader, yaml.BaseLoader):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml, "CBaseLoader", loader)
            try:
                load(text, file).place(("a", 0))
            except WorkflowError as error:
                assert all(problem.place.line and problem.place.column for problem in error.problems)
