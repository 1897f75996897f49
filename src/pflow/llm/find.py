"""Who answers to a name.

    local, local:PATH            a model file on this machine (`local`)
    http://host/v1#MODEL         any OpenAI-compatible server (`openai`)
    openai:MODEL                 the one at OPENAI_BASE_URL, or OpenAI itself
    script:PATH                  a script, for tests and demonstrations (`script`)
    anything else                a model or alias of the package llm, with its plugins and keys (`package`)

An empty name is the default of the settings, and if there is none, that of the package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pflow.llm.interface import Model, OnRetry


def find(
    name: str, *, default: str = "", env: Mapping[str, str] | None = None, on_retry: OnRetry | None = None
) -> Model:
    """The model of this name; ``env`` holds keys that count beside those of the process and before them."""
    name = name.strip() or default.strip()
    env = {**os.environ, **(env or {})}
    kind = name.partition(":")[0].lower()
    if kind in ("http", "https", "openai") and ":" in name:
        from pflow.llm.openai import endpoint

        return endpoint(name, env, on_retry)
    if kind == "local":
        from pflow.llm.local import local

        return local(name, on_retry)
    if kind == "script" and ":" in name:
        from pflow.llm.script import Scripted, script

        return Scripted(name, script(Path(name.partition(":")[2]).expanduser()), on_retry)
    from pflow.llm.package import packaged

    return packaged(name, env, on_retry)
