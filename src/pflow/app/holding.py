"""The local engine: a run in its folder on this machine, with lease, journal and views."""

from __future__ import annotations

from collections.abc import Callable

from pflow.app.views import Viewer
from pflow.errors import JournalError, PflowError
from pflow.kernel.run import Run
from pflow.model.redact import Redactor
from pflow.model.run import AnyRecord, Opened
from pflow.storage.journal import Journal
from pflow.storage.lease import Lease
from pflow.storage.runs import RunFolder
from pflow.storage.sealing import Seal


class Fenced:
    """A journal that is synced only by the process that holds the run's lease."""

    def __init__(self, journal: Journal, lease: Lease, durable: bool = True) -> None:
        self.append = journal.append
        self._journal = journal
        self._lease = lease
        self._durable = durable

    def sync(self) -> None:
        """Force what was written to disk, if this process still drives the run."""
        self._lease.check()
        if self._durable:
            self._journal.sync()


class Held:
    """A run's folder in the hands of this process."""

    def __init__(
        self, folder: RunFolder, lease: Lease, journal: Journal, records: list[AnyRecord], durable: bool
    ) -> None:
        self.folder = folder
        self.records = records
        self.journal = journal
        self.log = Fenced(journal, lease, durable)
        self._lease = lease

    @classmethod
    def create(cls, folder: RunFolder, durable: bool = True, seal: Seal | None = None) -> Held:
        """Take a new run's folder; without a seal, the records it will get are sealed already."""
        lease = Lease.acquire(folder.path, folder.id)
        return cls(folder, lease, Journal.create(folder.journal, seal), [], durable)

    @classmethod
    def open(cls, folder: RunFolder, seal: Callable[[Opened], Seal], durable: bool = True) -> Held:
        """Take an existing run's folder; raises ``RunBusy`` when a live process has it."""
        lease = Lease.acquire(folder.path, folder.id)
        try:
            journal, records = Journal.open(folder.journal, seal)
        except PflowError:
            lease.release()
            raise
        return cls(folder, lease, journal, records, durable)

    @property
    def opened(self) -> Opened:
        """The first record."""
        if not self.records or not isinstance(self.records[0], Opened):
            raise JournalError(f"{self.folder.journal} does not begin with the opening of a run", "start a new run")
        return self.records[0]

    async def drive(self, run: Run, redactor: Redactor) -> None:
        """Drive a run to where it can go, with its views kept up to date, and let go of the folder."""
        viewer = Viewer(run, self.folder.path, redactor)
        try:
            viewer.repair()
            run.watcher = viewer
            try:
                await run.drive()
            finally:
                viewer.refresh()
        finally:
            self.close()

    def repair(self, run: Run, redactor: Redactor) -> None:
        """Bring the views of a run that has ended up to date, if whoever drove it died before it did."""
        try:
            fresh = self.folder.state.stat().st_mtime_ns >= self.folder.journal.stat().st_mtime_ns
        except OSError:
            fresh = False
        if not fresh:
            Viewer(run, self.folder.path, redactor).repair()

    def close(self) -> None:
        """Let go of the folder."""
        self.journal.close()
        self._lease.release()
