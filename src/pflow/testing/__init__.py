"""Parts for tests of workflows, node types and schedulers: a fake clock, a journal in memory, conformance."""

from pflow.testing.clock import FakeClock
from pflow.testing.journal import ListLog
from pflow.testing.schedulers import Conformance

__all__ = ["Conformance", "FakeClock", "ListLog"]
