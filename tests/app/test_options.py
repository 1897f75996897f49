"""What can be said about how to run."""

from __future__ import annotations

from typing import Any

import pytest

from pflow import app
from pflow.app.options import Keywords, Options


def test_the_keywords_of_run_are_the_options_with_their_types() -> None:
    """They are written twice, since a type checker reads one and the engine the other."""
    told: dict[str, Any] = Keywords.__annotations__
    fields = set(Options.__struct_fields__)
    assert set(told) == fields
    written = {name: getattr(kind, "__forward_arg__", kind) for name, kind in told.items()}
    assert written == {name: Options.__annotations__[name] for name in fields}


def test_an_option_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(TypeError, match="jobz"):
        app.run_sync("flow.yaml", jobz=2)  # type: ignore[call-arg]
