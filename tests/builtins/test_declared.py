"""What every built-in type says of itself."""

from __future__ import annotations

import pytest

from pflow.nodes.registry import Registry

TYPES = {  # name: main in, main out, outputs, effect, as the users' table has them
    "code": ("input", "result", {"result", "stdout", "stderr"}, "impure"),
    "read-file": ("file_path", "content", {"content", "content_is_binary"}, "quiet"),
    "write-file": ("content", "file_path", {"file_path", "written"}, "impure"),
    "copy-file": ("source_path", "dest_path", {"dest_path", "copied"}, "impure"),
    "move-file": ("source_path", "dest_path", {"dest_path", "moved"}, "impure"),
    "delete-file": ("file_path", "deleted", {"deleted"}, "impure"),
    "http": ("url", "response", {"response", "status_code", "response_headers", "response_time"}, "quiet"),
    "fetch_url": ("url", "text", {"text", "title", "status_code"}, "quiet"),
    "ask": ("question", "answer", {"answer"}, "quiet"),
}


@pytest.mark.parametrize("name", TYPES)
def test_a_type_says_what_it_is(name: str) -> None:
    kind = Registry().get(name)
    main_in, main_out, outputs, effect = TYPES[name]
    assert (kind.main_in, kind.main_out) == (main_in, main_out)
    assert outputs <= set(kind.declared.outputs or ())
    assert kind.effect_for({}) == effect
    assert kind.version == "1" and kind.trusted
    assert len(kind.doc.splitlines()[0]) <= 120
    for example in kind.declared.examples:
        given = {kind.canonical(key): value for key, value in example.items()}
        assert set(given) <= set(kind.params)
        assert {param for param in kind.params if kind.params[param].required} <= set(given)
        kind.convert(given)
    assert kind.declared.examples
    assert set(kind.declared.reads) | set(kind.declared.writes) <= set(kind.params)
