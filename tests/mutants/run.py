"""Looks whether tests notice faults: each mutant is put into a copy of the project, and the tests must fail.

    make mutants                  all of them
    make mutants ONLY=memory      those in whose file, text or rule this word stands

A copy has an environment of its own, in which processes that tests start import the copy, too.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from itertools import chain
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.listed import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
COPIES = 2  # as many mutants at once
PATIENCE = 900  # seconds after which a mutant that makes tests wait for ever counts as noticed
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "dist", "build")


class Copy:
    """The project, copied into a folder, with an interpreter that imports it from there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        shutil.copytree(ROOT, self.root, ignore=LEFT_OUT)
        environment = folder / "venv"
        venv.create(environment, symlinks=True)
        self.python = environment / "bin" / "python"
        where = {"base": str(environment), "platbase": str(environment)}
        installed = Path(sysconfig.get_path("purelib", "venv", where)) / "copy.pth"
        # What was installed beside the project is found as well, but for its own link to the project.
        installed.write_text(f"{self.root / 'src'}\n{sysconfig.get_path('purelib')}\n")

    def imports_itself(self) -> bool:
        """Whether a process without any help from outside imports the copy."""
        code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import pflow; print(pflow.__file__)'])"
        said = subprocess.run(
            [self.python, "-c", code], cwd=self.root.parent, env=self._environment(), capture_output=True, text=True
        )
        return Path(said.stdout.strip()).is_relative_to(self.root)

    def test(self, tests: list[str], workers: int = 0) -> tuple[bool, str]:
        """Whether some tests pass, and the first that does not."""
        paths = [f"tests/{name}" for name in tests]
        command = [str(self.python), "-m", "pytest", "-q", "-x", "-n", str(workers), "--hypothesis-seed=0", *paths]
        with subprocess.Popen(
            command, cwd=self.root, env=self._environment(), text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return False, "it never ended"
        lines = said.splitlines()
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        first = failed[0].partition(" - ")[0].rpartition("/")[2] if failed else "\n".join(lines[-20:])
        return process.returncode == 0, first

    def notices(self, mutant: Mutant) -> tuple[bool, str]:
        """Whether the tests of a mutant fail with it, and which does first."""
        path = self.root / "src" / "pflow" / mutant.file
        before = path.read_text()
        self._write(path, before.replace(mutant.old, mutant.new))
        try:
            passed, first = self.test(mutant.tests.split())
        finally:
            self._write(path, before)
        return not passed, first

    def _write(self, path: Path, text: str) -> None:
        """Compiled code goes by seconds and sizes, which may be the same."""
        path.write_text(text)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _environment(self) -> dict[str, str]:
        return {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def stale(mutant: Mutant, root: Path) -> str:
    """What is wrong with a mutant for the code as it is, or nothing."""
    path = root / "src" / "pflow" / mutant.file
    count = path.read_text().count(mutant.old) if path.is_file() else -1
    if count == 1:
        return ""
    why = "there is no such file" if count < 0 else f"its text stands there {count} times"
    return f"stale mutant: {mutant.place}: {why}"


def chosen(word: str) -> list[Mutant]:
    """The mutants that a word names."""
    return [one for one in MUTANTS if word.casefold() in " ".join((one.file, one.old, one.breaks)).casefold()]


def main(word: str = "") -> int:
    """Try the mutants, tell of each, and give the exit code."""
    mutants = chosen(word)
    wrong = [text for mutant in mutants if (text := stale(mutant, ROOT))]
    if wrong or not mutants:
        print("\n".join(wrong) or f'no mutant is named by "{word}"')
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Copy(Path(folder) / str(n)) for n in range(min(COPIES, len(mutants)))]
        if not all(copy.imports_itself() for copy in copies):
            print("a process that a test starts would not import the mutated code")
            return 1
        everything = sorted(set(chain.from_iterable(mutant.tests.split() for mutant in mutants)))
        passed, first = copies[0].test(everything, COPIES)
        if not passed:
            print(f"without any mutant, tests fail: {first}")
            return 1
        survivors = _tried(mutants, copies)
    return _told(mutants, survivors)


def _tried(mutants: list[Mutant], copies: list[Copy]) -> list[Mutant]:
    """Those that nobody noticed; each copy takes the next that nobody has taken."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def attempt(mutant: Mutant) -> bool:
        copy = free.get()
        try:
            noticed, first = copy.notices(mutant)
        finally:
            free.put(copy)
        print(f"killed    {mutant.place}  ({first})" if noticed else f"SURVIVED  {mutant.place}  ({mutant.breaks})")
        sys.stdout.flush()
        return noticed

    with ThreadPoolExecutor(len(copies)) as pool:
        return [mutant for mutant, noticed in zip(mutants, pool.map(attempt, mutants), strict=True) if not noticed]


def _told(mutants: list[Mutant], survivors: list[Mutant]) -> int:
    """The end of the report."""
    print(f"\n{len(mutants)} mutants, {len(mutants) - len(survivors)} killed")
    for mutant in survivors:
        print(f"survived: {mutant.place}: {mutant.explained or mutant.breaks}")
    for mutant in mutants:
        if mutant.explained and mutant not in survivors:
            print(f"killed, though it was explained why it could not be: {mutant.place}")
    return 1 if any(not mutant.explained for mutant in survivors) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
