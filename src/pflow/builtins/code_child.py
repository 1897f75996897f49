"""The other side of ``code``: a program that runs a user's Python in a process of its own.

It gets a JSON request on stdin and writes a JSON answer to the descriptor named by its last argument; stdout and stderr
belong to the user's code. Nothing of pflow is imported, so that it starts fast and its names are in nobody's way.
"""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import linecache
import os
import sys
import traceback
import types
from collections.abc import Iterable, Iterator
from typing import Any

TAG = "__type"  # the key of an object that stands for something JSON lacks
FILE = "<code>"
_FRAMES = 20
_LINE = 200


class Unpackable(TypeError):
    """A value that is no plain data; ``place`` is where it is, ``["a"][0]``."""

    def __init__(self, value: Any) -> None:
        super().__init__(type(value).__qualname__)
        self.place = ""


def pack(value: Any) -> Any:
    """A value as JSON holds it: bytes are tagged, and an object that looks like a tag is wrapped in one."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {TAG: "base64", "data": base64.b64encode(value).decode()}
    if isinstance(value, (list, tuple)):
        return [item for _, item in _packed(enumerate(value))]
    if not isinstance(value, dict):
        raise Unpackable(value)
    made = dict(_packed(value.items()))
    return {TAG: "dict", "value": made} if TAG in value else made


def _packed(items: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    for key, item in items:
        if not (key is None or isinstance(key, (str, int, float))):
            raise Unpackable(key)
        try:
            yield key, pack(item)
        except Unpackable as error:
            error.place = f"[{key!r}]{error.place}"
            raise


def unpack(value: Any) -> Any:
    """The inverse of ``pack``."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(TAG) == "base64":
        return base64.b64decode(value["data"])
    inner = value["value"] if value.get(TAG) == "dict" else value
    return {key: unpack(item) for key, item in inner.items()}


def main() -> None:
    """Serve one request."""
    side = int(sys.argv.pop())
    os.set_inheritable(side, False)  # what the code starts has no business there
    request = unpack(json.load(sys.stdin.buffer))
    sys.stdin = io.StringIO()
    sys.argv = [FILE]
    sys.path.insert(0, os.getcwd())
    owner = os.getpid()
    answer = run(request)
    if os.getpid() != owner:
        return  # a fork of the code's that came back here is not asked
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue  # closed or replaced by the code
    with os.fdopen(side, "wb") as file:
        file.write(_encoded(answer))


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run the code: ``{"result": …}``, with ``"unset"`` where it left none, or ``{"error": …}``."""
    for name in request["requires"]:
        if not _importable(name):
            return {"missing": name}
    code: str = request["code"]
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module  # dataclasses and the like look their module up
    vars(module).update(request["variables"])
    try:
        exec(compile(code, FILE, "exec", dont_inherit=True), vars(module))
    except SystemExit as error:
        if error.code not in (None, 0):
            said = f"exit code {error.code}" if isinstance(error.code, int) else str(error.code)
            return {"error": {"type": "SystemExit", "message": said, **_where(error)}}
    except BaseException as error:  # noqa: BLE001 - the user's code: whatever it raises is its answer
        return {"error": _described(error)}
    return _result(vars(module))


def _result(variables: dict[str, Any]) -> dict[str, Any]:
    if "result" not in variables:
        return {"result": None, "unset": True}
    try:
        return {"result": pack(variables["result"])}
    except Unpackable as error:
        return {"unfit": f"result{error.place} is a {error}, which is no plain data"}
    except RecursionError:
        return {"unfit": "result contains itself, or is nested too deep"}


def _encoded(answer: dict[str, Any]) -> bytes:
    try:
        return json.dumps(answer).encode()
    except (ValueError, RecursionError) as error:  # a number of too many digits, or too deep for the encoder
        return json.dumps({"unfit": f"result cannot be written as JSON: {error}"}).encode()


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _described(error: BaseException) -> dict[str, Any]:
    """An exception in the words and line numbers of the user's code."""
    made: dict[str, Any] = {**_where(error), "type": type(error).__name__, "message": _text(error)}
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line = (error.text or "").rstrip("\n")
        made |= {"message": error.msg, "syntax": True, "line": error.lineno or 0}
        made["frames"] = [f"line {error.lineno}: {line.strip()[:_LINE]}"]
    if isinstance(error, ModuleNotFoundError):
        made["module"] = error.name or ""
    if isinstance(error, NameError):
        made["name"] = error.name or ""
    return made


def _where(error: BaseException) -> dict[str, Any]:
    """The lines of the user's code that led to an exception, and the whole traceback from there on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != FILE:
        trace = trace.tb_next
    own = [frame for frame in traceback.extract_tb(trace) if frame.filename == FILE]
    frames = [
        f"line {frame.lineno}{'' if frame.name == '<module>' else f', in {frame.name}'}: {(frame.line or '')[:_LINE]}"
        for frame in own[-_FRAMES:]
    ]
    whole = "".join(traceback.format_exception(type(error), error, trace, limit=-3 * _FRAMES))
    return {"line": own[-1].lineno if own else 0, "frames": frames, "traceback": whole[-20_000:]}


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot even be printed
        return ""


if __name__ == "__main__":
    main()
