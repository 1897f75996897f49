"""Files: read, write, copy, move, delete. Relative paths begin where pflow was started.

Looking any type up may import this module, so it imports what few uses need where it is needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

from pflow.nodes import NodeError, StepContext, node, to_text

SMALL = 1_000_000  # bytes that are read or written in place; for more there is a thread, so that others go on
_CHUNK = 1 << 20
T = TypeVar("T")


@node(
    "read-file",
    version="1",
    effect="quiet",
    main_in="file_path",
    main_out="content",
    aliases={"filePath": "file_path"},
    outputs=("content", "content_is_binary"),
    reads=("file_path",),
    examples=[{"file_path": "README.md"}, {"file_path": "notes.txt", "encoding": "latin-1", "line_numbers": True}],
)
async def read_file(
    step: StepContext, file_path: str, encoding: str | None = None, line_numbers: bool = False
) -> dict[str, Any]:
    """Read a file: as text when it is UTF-8, or in ``encoding``; what is no text comes as bytes."""
    path = _path(step, file_path, "file_path")
    size = _existing(path, "file_path").st_size
    with _explained("read", path):
        data = await _in_turn(size, path.read_bytes)
    text = _decoded(data, encoding, path)
    if text is None:
        return {"content": data, "content_is_binary": True}
    return {"content": _numbered(text) if line_numbers else text, "content_is_binary": False}


@node(
    "write-file",
    version="1",
    main_in="content",
    main_out="file_path",
    outputs=("file_path", "written"),
    writes=("file_path",),
    examples=[{"content": "hello\n", "file_path": "out/hello.txt"}],
)
async def write_file(step: StepContext, content: Any, file_path: str, append: bool = False) -> dict[str, Any]:
    """Write a text, bytes, or an object or list as JSON to a file, whole or not at all; missing folders are made."""
    path = _path(step, file_path, "file_path")
    data = _encoded(content, append)
    target = _target(path, "file_path")
    with _explained("written", path):
        await _in_turn(len(data), _append if append else _write, target, data)
    return {"file_path": str(path), "written": True}


@node(
    "copy-file",
    version="1",
    main_in="source_path",
    main_out="dest_path",
    outputs=("dest_path", "copied"),
    reads=("source_path",),
    writes=("dest_path",),
    examples=[{"source_path": "a.txt", "dest_path": "backup/a.txt"}],
)
async def copy_file(step: StepContext, source_path: str, dest_path: str, overwrite: bool = False) -> dict[str, Any]:
    """Copy a file, with its mode and times; an existing one is replaced only with ``overwrite``."""
    source, dest = _path(step, source_path, "source_path"), _path(step, dest_path, "dest_path")
    size = _existing(source, "source_path").st_size
    _check_pair(source, dest, overwrite)
    stop = threading.Event()
    with _explained("copied", source):
        await _in_turn(size, _copy, source, _target(dest, "dest_path"), overwrite, stop, stop=stop)
    return {"dest_path": str(dest), "copied": True}


@node(
    "move-file",
    version="1",
    main_in="source_path",
    main_out="dest_path",
    outputs=("dest_path", "moved"),
    reads=("source_path",),
    writes=("dest_path",),
    examples=[{"source_path": "draft.txt", "dest_path": "final/report.txt"}],
)
async def move_file(step: StepContext, source_path: str, dest_path: str, overwrite: bool = False) -> dict[str, Any]:
    """Move or rename a file, also to another disk; an existing one is replaced only with ``overwrite``."""
    source, dest = _path(step, source_path, "source_path"), _path(step, dest_path, "dest_path")
    size = _existing(source, "source_path").st_size
    _check_pair(source, dest, overwrite)
    stop = threading.Event()
    with _explained("moved", source):
        dest.parent.mkdir(parents=True, exist_ok=True)
        try:
            _place(source, dest, overwrite)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            await _in_turn(size, _copy, source, dest, overwrite, stop, stop=stop)
            source.unlink()
    return {"dest_path": str(dest), "moved": True}


@node(
    "delete-file",
    version="1",
    main_in="file_path",
    main_out="deleted",
    outputs=("deleted",),
    writes=("file_path",),
    examples=[{"file_path": "tmp/old.txt", "confirm": True}],
)
async def delete_file(step: StepContext, file_path: str, confirm: bool = False) -> dict[str, Any]:
    """Delete a file, for which ``confirm`` must be true; ``deleted`` is false when there was none."""
    path = _path(step, file_path, "file_path")
    if not confirm:
        raise NodeError(f"{path} was not deleted: confirm is not true", "set confirm: true", kind="validation")
    if path.is_dir() and not path.is_symlink():
        raise NodeError(f"{path} is a folder", "delete-file deletes single files", kind="validation")
    with _explained("deleted", path):
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            step.log.warn(f"there was no file {path} to delete")
            return {"deleted": False}
    return {"deleted": True}


# ── paths ──


def _path(step: StepContext, given: str, param: str) -> Path:
    """The absolute path that a param names."""
    if not given.strip():
        raise NodeError(f"{param} is empty", "give the path of a file", kind="validation")
    if "\0" in given:
        raise NodeError(f"{param} contains a NUL character", kind="validation")
    if given == "~" or given.startswith("~/"):
        # Only a shell knows ~, and a folder of that name in the workspace is nobody's wish.
        whole = Path(given).expanduser()
        raise NodeError(f'{param} begins with "~", which means nothing here', f"write {whole}", kind="validation")
    return (step.workspace / given).absolute()


def _existing(path: Path, param: str) -> os.stat_result:
    """What is known of a file that must be there."""
    with _explained("read", path):
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise NodeError(f"there is no file {path}", _similar(path)) from None
    _check_regular(path, found, param)
    return found


def _target(path: Path, param: str) -> Path:
    """The file to write for a path: behind a symbolic link, what it points to."""
    with _explained("written", path):
        with contextlib.suppress(FileNotFoundError):
            _check_regular(path, path.stat(), param)
            if not os.access(path, os.W_OK):  # a rename would not ask
                raise NodeError(f"{path} is write-protected", f"make it writable, or choose another {param}")
        return path.resolve() if path.is_symlink() else path


def _check_regular(path: Path, found: os.stat_result, param: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        hint = "this type works on single files: name the file too"
        raise NodeError(f"{param} is a folder: {path}", hint, kind="validation")
    if not stat.S_ISREG(found.st_mode):
        raise NodeError(f"{param} is no regular file: {path}", "pipes and devices are for shell", kind="validation")


def _check_pair(source: Path, dest: Path, overwrite: bool) -> None:
    _target(dest, "dest_path")
    if dest.exists() and dest.samefile(source):
        raise NodeError(f"source_path and dest_path are the same file: {source}", kind="validation")
    if not overwrite and os.path.lexists(dest):
        _refuse(dest)


def _refuse(dest: Path) -> NoReturn:
    raise NodeError(f"{dest} exists already", "set overwrite: true to replace it, or choose another dest_path")


def _similar(path: Path) -> str:
    """A hint at what is there instead."""
    folder = next(parent for parent in path.parents if parent.is_dir())
    if folder != path.parent:
        return f"there is no folder {path.parent} either"
    import difflib

    with contextlib.suppress(OSError):
        close = difflib.get_close_matches(path.name, os.listdir(folder), 1)  # noqa: PTH208 - names are all it takes
        if close:
            return f'did you mean "{close[0]}"?'
    return "relative paths begin where pflow was started"


@contextlib.contextmanager
def _explained(done: str, path: Path) -> Iterator[None]:
    """Say in a sentence what the system refused."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) and error.filename != str(path) else ""
        text = f"{path} cannot be {done}: {error.strerror or error}"
        raise NodeError(text + (f" ({where})" if where else ""), _advice(error)) from None


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return "check who may write there"
        case errno.ENOTDIR | errno.EEXIST:
            return "a part of the path that should be a folder is a file"
        case errno.ENAMETOOLONG:
            return "is it a content where a path belongs?"
        case errno.ENOSPC | errno.EDQUOT:
            return "make room on the disk"
    return ""


# ── contents ──


def _decoded(data: bytes, encoding: str | None, path: Path) -> str | None:
    """The text that a file holds; None for what is no text."""
    if encoding:
        try:
            return data.decode(encoding)
        except UnicodeError as error:
            at = f" (at byte {error.start:,})" if isinstance(error, UnicodeDecodeError) else ""
            hint = "give the encoding it has, or none to take UTF-8 as text and anything else as bytes"
            raise NodeError(f"{path} is not {encoding}{at}", hint) from None
        except (LookupError, ValueError):
            hint = "utf-8, utf-16, latin-1, cp1252, …: any name that Python knows"
            raise NodeError(f'unknown encoding "{encoding}"', hint, kind="validation") from None
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _numbered(text: str) -> str:
    """Each line with its number, counted from 1."""
    lines = text.split("\n")
    last = lines.pop() if lines[-1] == "" else None  # the end of the last line begins no other
    made = "\n".join(f"{n}: {line}" for n, line in enumerate(lines, 1))
    return made if last is None or not lines else made + "\n"


def _encoded(content: Any, append: bool) -> bytes:
    """What goes into the file; JSON is one line where it is appended to others."""
    if content is None:
        raise NodeError("content is null", 'write "" where an empty file is meant', kind="validation")
    if isinstance(content, bytes):
        return content
    import json

    try:
        if isinstance(content, (dict, list)):
            content = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=None if append else 2) + "\n"
        return to_text(content).encode()
    except UnicodeEncodeError:
        raise NodeError("content holds characters that are half of a pair", "check where it was decoded") from None
    except (TypeError, ValueError, RecursionError) as error:
        hint = "JSON has no bytes, NaN or infinity: write bytes by themselves, or convert them to text"
        raise NodeError(f"content cannot be written as JSON: {error}", hint) from None


# ── work ──


async def _in_turn(size: int, work: Callable[..., T], *args: Any, stop: threading.Event | None = None) -> T:
    """Do little work in place and much in a thread, which is told when it should stop and is waited for."""
    if size <= SMALL:
        return work(*args)
    task = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if stop is not None:
            stop.set()
        await asyncio.wait({task})
        task.cancelled() or task.exception()
        raise


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file next to the target, removed again if it was not put in its place."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{os.urandom(8).hex()}.tmp"
    try:
        with temporary.open("xb") as file:
            yield temporary, file
    finally:
        temporary.unlink(missing_ok=True)


def _write(target: Path, data: bytes) -> None:
    with _beside(target) as (temporary, file):
        file.write(data)
        _finish(file)
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)


def _append(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as file:
        file.write(data)
        _finish(file)


def _copy(source: Path, target: Path, overwrite: bool, stop: threading.Event) -> None:
    import shutil

    with source.open("rb") as reading, _beside(target) as (temporary, file):
        while not stop.is_set() and (chunk := reading.read(_CHUNK)):
            file.write(chunk)
        if stop.is_set():
            return
        _finish(file)
        shutil.copystat(source, temporary)
        _place(temporary, target, overwrite)


def _finish(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _place(source: Path, dest: Path, overwrite: bool) -> None:
    """Rename; without ``overwrite`` in a way that cannot replace what another process put there meanwhile."""
    if overwrite:
        source.replace(dest)
        return
    try:
        os.link(source, dest, follow_symlinks=False)
    except FileExistsError:
        _refuse(dest)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise
        if os.path.lexists(dest):  # there are no links here, so looking must do
            _refuse(dest)
        source.replace(dest)
    else:
        source.unlink()
