from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pflow.builtins import files
from pflow.model.workflow import Node
from tests.builtins.running import NODE, VISIT, driven, failure, outputs
from tests.kernel.driving import Driven, workflow

not_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")


# ── read-file ──


def test_text_is_read_as_it_is() -> None:
    Path("a.txt").write_bytes("é\r\nb\n".encode())
    assert outputs("read-file", file_path="a.txt") == {"content": "é\r\nb\n", "content_is_binary": False}


def test_a_byte_order_mark_is_no_content() -> None:
    Path("a.txt").write_bytes(b"\xef\xbb\xbfx")
    assert outputs("read-file", file_path="a.txt")["content"] == "x"


@pytest.mark.parametrize("data", [b"\x89PNG\r\n", b"a\0b"])
def test_what_is_no_text_comes_as_bytes(data: bytes) -> None:
    Path("a.bin").write_bytes(data)
    made = outputs("read-file", file_path="a.bin", line_numbers=True)
    assert made == {"content": data, "content_is_binary": True}


def test_an_encoding_is_taken_at_its_word() -> None:
    Path("a.txt").write_bytes("größe".encode("latin-1"))
    assert outputs("read-file", file_path="a.txt", encoding="latin-1")["content"] == "größe"
    failed = failure("read-file", file_path="a.txt", encoding="utf-8")
    assert failed.kind == "node" and "is not utf-8 (at byte 2)" in failed.message and failed.hint


@pytest.mark.parametrize("encoding", ["utf8000", "base64", "a\0b"])
def test_an_encoding_that_is_none_is_a_mistake_of_the_workflow(encoding: str) -> None:
    Path("a.txt").write_text("x")
    failed = failure("read-file", file_path="a.txt", encoding=encoding)
    assert failed.kind == "validation" and "unknown encoding" in failed.message


@pytest.mark.parametrize(
    ("text", "numbered"), [("a\nb\n", "1: a\n2: b\n"), ("a\n\nb", "1: a\n2: \n3: b"), ("a\fb", "1: a\fb"), ("", "")]
)
def test_lines_are_numbered_from_one(text: str, numbered: str) -> None:
    Path("a.txt").write_text(text)
    assert outputs("read-file", file_path="a.txt", line_numbers=True)["content"] == numbered


def test_a_missing_file_is_named_with_the_one_that_may_be_meant() -> None:
    Path("notes.txt").touch()
    failed = failure("read-file", file_path="note.txt")
    assert failed.kind == "node" and str(Path.cwd() / "note.txt") in failed.message
    assert failed.hint == 'did you mean "notes.txt"?'
    assert "no folder" in failure("read-file", file_path="nowhere/a.txt").hint
    assert "no file" in failure("read-file", file_path="notes.txt/a").message


def test_what_is_no_single_file_is_refused() -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    assert "is a folder" in failure("read-file", file_path="folder").message
    assert "no regular file" in failure("read-file", file_path="pipe").message


@pytest.mark.parametrize(("path", "said"), [("  ", "empty"), ("a\0b", "NUL"), ("~/x", "~")])
def test_paths_that_mean_nothing(path: str, said: str) -> None:
    rest: dict[str, dict[str, Any]] = {"read-file": {}, "delete-file": {"confirm": True}, "write-file": {"content": ""}}
    for kind, params in rest.items():
        failed = failure(kind, file_path=path, **params)
        assert failed.kind == "validation" and said in failed.message


def test_a_large_file_is_read_in_a_thread() -> None:
    text = "x" * (files.SMALL + 1)
    outputs("write-file", content=text, file_path="large.txt")
    assert outputs("read-file", file_path="large.txt")["content"] == text


# ── write-file ──


@pytest.mark.parametrize(
    ("content", "data"),
    [
        ("é\r\n", "é\r\n".encode()),
        (b"\0\xff", b"\0\xff"),
        ({"é": [1, None]}, '{\n  "é": [\n    1,\n    null\n  ]\n}\n'.encode()),
        (True, b"true"),
        (1.5, b"1.5"),
        ("", b""),
    ],
)
def test_what_is_written(content: Any, data: bytes) -> None:
    made = outputs("write-file", content=content, file_path="new/sub/a.txt")
    path = Path.cwd() / "new" / "sub" / "a.txt"
    assert made == {"file_path": str(path), "written": True}
    assert path.read_bytes() == data
    assert [entry.name for entry in path.parent.iterdir()] == ["a.txt"]


def test_appended_objects_are_lines_of_json() -> None:
    for n in (1, 2):
        outputs("write-file", content={"n": n}, file_path="log/a.jsonl", append=True)
    outputs("write-file", content="end", file_path="log/a.jsonl", append=True)
    assert Path("log/a.jsonl").read_text() == '{"n": 1}\n{"n": 2}\nend'


def test_a_file_keeps_its_mode_and_a_new_one_follows_the_umask() -> None:
    Path("a.sh").write_text("old")
    Path("a.sh").chmod(0o750)
    outputs("write-file", content="new", file_path="a.sh")
    assert stat.S_IMODE(Path("a.sh").stat().st_mode) == 0o750
    old = os.umask(0o027)
    try:
        outputs("write-file", content="new", file_path="b")
    finally:
        os.umask(old)
    assert stat.S_IMODE(Path("b").stat().st_mode) == 0o640


def test_a_symbolic_link_stays_one() -> None:
    Path("real.txt").write_text("old")
    Path("link.txt").symlink_to("real.txt")
    outputs("write-file", content="new", file_path="link.txt")
    assert Path("link.txt").is_symlink() and Path("real.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "content is null"),
        ({"a": b"x"}, "as JSON"),
        ([float("nan")], "as JSON"),
        ("\ud800", "half of a pair"),
        (["\ud800"], "half of a pair"),
    ],
)
def test_content_that_no_file_can_hold_changes_nothing(content: Any, said: str) -> None:
    Path("a.txt").write_text("old")
    failed = failure("write-file", content=content, file_path="a.txt")
    assert said in failed.message and failed.hint
    assert Path("a.txt").read_text() == "old"


def test_a_path_through_a_file_or_to_a_folder_cannot_be_written() -> None:
    Path("a.txt").write_text("old")
    Path("folder").mkdir()
    assert "should be a folder" in failure("write-file", content="x", file_path="a.txt/b").hint
    assert "is a folder" in failure("write-file", content="x", file_path="folder").message
    assert "path belongs" in failure("write-file", content="x", file_path="x" * 300).hint


@not_root
def test_a_protected_file_or_folder_is_not_written() -> None:
    Path("a.txt").write_text("old")
    Path("a.txt").chmod(0o444)
    assert "write-protected" in failure("write-file", content="new", file_path="a.txt").message
    Path("closed").mkdir(mode=0o500)
    assert "Permission denied" in failure("write-file", content="new", file_path="closed/a.txt").message
    Path("a.txt").chmod(0)
    assert "cannot be read: Permission denied" in failure("read-file", file_path="a.txt").message


# ── copy-file, move-file ──


def test_a_copy_has_content_and_mode() -> None:
    Path("a.sh").write_text("x")
    Path("a.sh").chmod(0o700)
    made = outputs("copy-file", source_path="a.sh", dest_path="sub/b.sh")
    assert made == {"dest_path": str(Path.cwd() / "sub/b.sh"), "copied": True}
    assert Path("sub/b.sh").read_text() == "x" and os.access("sub/b.sh", os.X_OK)
    assert Path("a.sh").exists()


def test_a_large_copy() -> None:
    data = os.urandom(files.SMALL * 3)
    Path("a").write_bytes(data)
    outputs("copy-file", source_path="a", dest_path="b")
    assert Path("b").read_bytes() == data


def test_a_moved_file_is_gone_from_where_it_was() -> None:
    Path("a.txt").write_text("x")
    made = outputs("move-file", source_path="a.txt", dest_path="sub/b.txt")
    assert made == {"dest_path": str(Path.cwd() / "sub/b.txt"), "moved": True}
    assert not Path("a.txt").exists() and Path("sub/b.txt").read_text() == "x"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no second disk")
def test_a_file_moves_to_another_disk(tmp_path: Path) -> None:
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second disk")
    far = Path(f"/dev/shm/pflow-test-{os.getpid()}")
    try:
        Path("a.txt").write_text("x")
        outputs("move-file", source_path="a.txt", dest_path=str(far))
        assert far.read_text() == "x" and not Path("a.txt").exists()
    finally:
        far.unlink(missing_ok=True)


@pytest.mark.parametrize("kind", ["copy-file", "move-file"])
def test_an_existing_target_needs_overwrite(kind: str) -> None:
    Path("a.txt").write_text("new")
    Path("b.txt").write_text("old")
    failed = failure(kind, source_path="a.txt", dest_path="b.txt")
    assert "exists already" in failed.message and "overwrite: true" in failed.hint
    assert Path("a.txt").exists() and Path("b.txt").read_text() == "old"
    outputs(kind, source_path="a.txt", dest_path="b.txt", overwrite=True)
    assert Path("b.txt").read_text() == "new"


@pytest.mark.parametrize("kind", ["copy-file", "move-file"])
def test_pairs_that_cannot_be(kind: str) -> None:
    Path("folder").mkdir()
    Path("a.txt").write_text("x")
    Path("dangling").symlink_to("nowhere")
    assert "is a folder" in failure(kind, source_path="folder", dest_path="b").message
    assert "is a folder" in failure(kind, source_path="a.txt", dest_path="folder").message
    assert "no file" in failure(kind, source_path="b.txt", dest_path="c.txt").message
    assert "same file" in failure(kind, source_path="a.txt", dest_path="./a.txt", overwrite=True).message
    assert "exists already" in failure(kind, source_path="a.txt", dest_path="dangling").message
    assert Path("a.txt").read_text() == "x"


def test_a_cancelled_copy_leaves_nothing() -> None:
    size = 300_000_000  # long enough to be caught; sparse, so that it takes no room
    with Path("a").open("wb") as file:
        file.truncate(size)
    run = Driven(workflow(Node(NODE, "copy-file", {"source_path": "a", "dest_path": "sub/b"})))

    async def main() -> None:
        driving = asyncio.ensure_future(run.run.drive())
        while not (Path("sub").is_dir() and any(Path("sub").iterdir())):
            await asyncio.sleep(0)
        run.run.cancel("enough")
        await driving

    asyncio.run(main())
    assert run.ended[VISIT].status == "cancelled"
    assert list(Path("sub").iterdir()) == []


# ── delete-file ──


def test_deleting_needs_a_confirmation() -> None:
    Path("a.txt").touch()
    failed = failure("delete-file", file_path="a.txt")
    assert failed.kind == "validation" and failed.hint == "set confirm: true"
    assert Path("a.txt").exists()
    assert outputs("delete-file", file_path="a.txt", confirm=True) == {"deleted": True}
    assert not Path("a.txt").exists()


def test_deleting_what_is_not_there_says_so() -> None:
    run = driven("delete-file", file_path="a.txt", confirm=True)
    assert run.outputs[NODE] == {"deleted": False}
    assert "log" in run.kinds


def test_a_folder_is_not_deleted_but_a_link_to_one_is() -> None:
    Path("folder").mkdir()
    Path("link").symlink_to("folder")
    assert "is a folder" in failure("delete-file", file_path="folder", confirm=True).message
    assert outputs("delete-file", file_path="link", confirm=True) == {"deleted": True}
    assert Path("folder").is_dir()


def test_a_chain_of_files() -> None:
    flow = workflow(
        Node("w", "write-file", {"content": {"a": 1}, "file_path": "x.json"}),
        Node("m", "move-file", {"source_path": "{{w.file_path}}", "dest_path": "y.json"}),
        Node("r", "read-file", {"file_path": "{{m.dest_path}}"}),
        edges="w>m m>r",
    )
    assert json.loads(Driven(flow).drive().outputs["r"]["content"]) == {"a": 1}
