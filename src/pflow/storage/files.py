"""Private files: folders 0700, files 0600 under any umask, replaced whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec

from pflow.model.conversation import whole
from pflow.model.value import plain, portable, restore

# File names that stand beside node files; compared without case, as some file systems do.
RESERVED = frozenset({"metadata"})
_LONGEST = 200  # bytes; leaves room for an extension below the usual limit of 255
_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]")
_encoder = msgspec.json.Encoder(enc_hook=whole)
_chosen: ContextVar[Path | None] = ContextVar("home", default=None)


def home() -> Path:
    """The folder that holds everything of this user: ``PFLOW_HOME``, or ``~/.pflow``, or what ``at_home`` says."""
    return _chosen.get() or Path(os.environ.get("PFLOW_HOME") or "~/.pflow").expanduser().absolute()


@contextmanager
def at_home(path: Path | None) -> Iterator[None]:
    """Have another home folder for what is done here; None changes nothing."""
    token = _chosen.set(path or _chosen.get())
    try:
        yield
    finally:
        _chosen.reset(token)


def private_folder(path: Path) -> Path:
    """Make a folder, and the parents it lacks, for this user only; an existing one keeps its mode."""
    if path.is_dir():
        return path
    private_folder(path.parent)
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # the umask may have taken from what mkdir was asked for
    return path


def open_private(path: Path, flags: int) -> int:
    """Open a file for this user only, made if missing; no child process inherits the descriptor."""
    fd = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``, in as many calls as the system wants."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def write_atomic(path: Path, data: bytes, sync: bool = False) -> None:
    """Put ``data`` at ``path`` such that a reader sees the old file or the new one, never a part."""
    private_folder(path.parent)
    # The leading dot keeps a temporary file that a crash left behind out of every listing.
    temporary = path.parent / f".{os.urandom(8).hex()}.tmp"
    try:
        _write_new(temporary, data, sync)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if sync:
        sync_path(path.parent)


def _write_new(path: Path, data: bytes, sync: bool) -> None:
    fd = open_private(path, os.O_WRONLY | os.O_EXCL)
    try:
        write_all(fd, data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_path(path: Path) -> None:
    """Force a file, or a folder's list of names, to disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def encode_json(value: Any, indent: int = 0) -> bytes:
    """A value as JSON, tagged where JSON lacks a type; lines are indented for people when asked."""
    data = _encoder.encode(portable(plain(value)))
    return msgspec.json.format(data, indent=indent) + b"\n" if indent else data


def write_json(path: Path, value: Any, sync: bool = False, indent: int = 0) -> None:
    """Write a value as a JSON file, atomically."""
    write_atomic(path, encode_json(value, indent), sync)


def read_json(path: Path) -> Any:
    """The value that ``write_json`` wrote; raises OSError or ValueError."""
    return restore(msgspec.json.decode(path.read_bytes()))


def read_object(path: Path) -> dict[str, Any]:
    """The mapping that ``write_json`` wrote; empty where there is none that can be read."""
    try:
        found = read_json(path)
    except (OSError, ValueError, TypeError, KeyError):
        return {}
    return found if isinstance(found, dict) else {}


def safe_name(name: str) -> str:
    """Any text as one file name, and no two texts as the same one.

    Letters, digits, ``.``, ``_`` and ``-`` stay; other bytes become ``%XX``, and so does a first character
    that would make a hidden or a reserved name. A lone ``%`` is the empty text. What is too long is cut and
    ends in ``%-`` and a digest, which no short name can contain.
    """
    raw = name.encode("utf-8", "surrogatepass")
    text = _UNSAFE.sub(_escape, raw).decode()
    if text.startswith(".") or text.casefold() in RESERVED:
        text = f"%{raw[0]:02X}{text[1:]}"
    if len(text) > _LONGEST:
        suffix = f"%-{hashlib.sha256(raw).hexdigest()}"
        text = text[: _LONGEST - len(suffix)] + suffix
    return text or "%"


def _escape(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]
