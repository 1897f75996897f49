"""The local engine: a run in its folder on this machine, with lease, journal and views."""

from __future__ import annotations

from functools import cached_property

from pflow.app.views import Viewer
from pflow.errors import RunError
from pflow.kernel.run import Run
from pflow.model.records import AnyRecord, Opened
from pflow.model.redact import Redactor
from pflow.storage.journal import Journal, as_it_stands, read
from pflow.storage.lease import Lease
from pflow.storage.runs import RunFolder
from pflow.storage.sealing import Seal


class NoJournal:
    """The journal of a run without a folder: it keeps nothing."""

    __slots__ = ()

    def append(self, record: AnyRecord) -> None:
        """Forget the record."""

    def sync(self) -> None:
        """Do nothing."""


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


class Driver:
    """A run's folder in the hands of this process."""

    journal: Journal  # there once the folder was created or read
    log: Fenced

    def __init__(self, folder: RunFolder, durable: bool) -> None:
        self.folder = folder
        self.records: list[AnyRecord] = []
        self._durable = durable
        self._lease = Lease.acquire(folder.path, folder.id)

    @classmethod
    def create(cls, folder: RunFolder, durable: bool = True, seal: Seal | None = None) -> Driver:
        """Take a new run's folder; without a seal, the records it will get are sealed already."""
        made = cls(folder, durable)
        made._write(Journal.create(folder.journal, seal))
        return made

    @classmethod
    def open(cls, folder: RunFolder, durable: bool = True) -> Driver:
        """Take an existing run's folder, to be ``read``; raises ``RunBusy`` when a live process has it."""
        return cls(folder, durable)

    def read(self, seal: Seal) -> None:
        """Read the records, with their secrets."""
        journal, self.records = Journal.open(self.folder.journal, seal)
        self._write(journal)

    def _write(self, journal: Journal) -> None:
        self.journal = journal
        self.log = Fenced(journal, self._lease, self._durable)

    @property
    def opened(self) -> Opened:
        """The first record; before the others are read, it tells what is needed to read them."""
        first = self.records[0] if self.records else self._first
        if not isinstance(first, Opened):
            text = f"run {self.folder.id} has no beginning: it was stopped before anything was done"
            raise RunError(text, "start a new run")
        return first

    @cached_property
    def _first(self) -> AnyRecord | None:
        return next(read(self.folder.journal, as_it_stands), None)

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
        if hasattr(self, "journal"):
            self.journal.close()
        self._lease.release()
