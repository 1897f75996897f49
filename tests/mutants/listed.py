"""Mutants: small faults, each of which breaks a rule that some test must hold.

A mutant is found by a short text that stands exactly once in its file; where code moves, only that and the file change.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One fault."""

    file: str  # below src/pflow
    old: str
    new: str
    breaks: str  # the rule that does not hold any more
    tests: str  # where it must be noticed: folders and files below tests
    once: bool = False  # it went unnoticed once
    explained: str = ""  # why no test can notice it

    @property
    def place(self) -> str:
        """Its file and the first words of what it changes."""
        return f"{self.file}: {' '.join(self.old.split())[:60]}"


MEMORY = "kernel/test_memory.py"
KERNEL = "kernel"

MUTANTS = (
    # What a run remembers.
    Mutant(
        "kernel/memory.py",
        'if outcome.status == "completed" or outcome.status == "skipped":',
        'if outcome.status == "completed":',
        "a doubt that was settled by skipping is no doubt any more",
        MEMORY,
        once=True,
    ),
    Mutant(
        "kernel/memory.py",
        "self.failed_before = dict(self.tried)",
        "pass",
        "a run that is resumed has all of its attempts again",
        KERNEL,
        once=True,
    ),
    Mutant(
        "kernel/memory.py",
        "self.asked = {key: ask for key, ask in self.asked.items() if key[0] != visit}",
        "pass",
        "a visit that ended has no open question",
        MEMORY,
        once=True,
    ),
    Mutant(
        "kernel/memory.py",
        "self.held.pop(visit, None)",
        "pass",
        "a visit that ended is held no more",
        MEMORY,
        once=True,
    ),
    Mutant(
        "kernel/memory.py",
        'if record.decision == "retry":\n            self.begun.pop(record.visit, None)',
        'if record.decision == "retry":',
        "a run killed between a decision and the next intent is in no doubt",
        MEMORY,
        once=True,
    ),
    Mutant(
        "kernel/memory.py",
        'if fact.outcome.status in ("failed", "cancelled")}',
        'if fact.outcome.status == "failed"}',
        "children that were stopped have all of their attempts again when their composite is tried again",
        KERNEL,
        once=True,
    ),
    Mutant(
        "kernel/memory.py",
        '_OPEN = ("timeout", "lost")',
        '_OPEN = ("lost",)',
        "a timed-out effect may have happened",
        KERNEL,
    ),
    Mutant(
        "kernel/memory.py",
        "self.tried[visit] = outcome.attempts",
        "pass",
        "attempts count on over a failure",
        KERNEL,
    ),
    Mutant(
        "kernel/memory.py",
        "if self.decided:\n            self.decided.pop(record.visit, None)",
        "pass",
        "a decision is good for one attempt",
        MEMORY,
    ),
    # How a visit is executed.
    Mutant(
        "kernel/run.py",
        "if self.leaving or visit not in scope.stopping:",
        "if visit not in scope.stopping:",
        "an interrupt writes nothing, even while a visit is being stopped",
        KERNEL,
        once=True,
    ),
    Mutant(
        "kernel/run.py",
        "        if intent:\n            self.journal.sync()",
        "",
        "an intent is on disk before the effect",
        KERNEL,
    ),
    Mutant(
        "kernel/run.py",
        "at_once = not ready.wait_until and not self.reuse.claims",
        "at_once = not self.reuse.claims",
        "a crash during the delay before another attempt is no doubt",
        KERNEL,
    ),
    Mutant(
        "kernel/run.py",
        "        ready.attempt += 1\n        ready.begun = False",
        "        ready.attempt += 1",
        "each attempt writes an intent of its own",
        KERNEL,
    ),
    Mutant(
        "kernel/run.py",
        "self._posted.append((scope, Ended(self.clock.now(), visit.id, scope.route(visit, made))))",
        "self._posted.appendleft((scope, Ended(self.clock.now(), visit.id, scope.route(visit, made))))",
        "facts are told in the order in which they came about",
        KERNEL,
    ),
    Mutant(
        "kernel/execute.py",
        "if visit.id in run.memory.begun and not ready.begun:",
        "if False:",
        "what may have taken effect is not repeated unasked",
        KERNEL,
    ),
    Mutant(
        "kernel/execute.py",
        "delay_before(policy, made, ready.attempt - first)",
        "delay_before(policy, made, ready.attempt)",
        "attempts before a reopening do not count against the policy",
        KERNEL,
    ),
    Mutant(
        "kernel/execute.py",
        "ready.used.update(memory.used.get(visit.id, {}))",
        "pass",
        "what attempts before a crash used counts with the outcome",
        "kernel llm",
    ),
    Mutant(
        "kernel/attempt.py",
        "if tried >= rule.attempts or failure.kind in _UNCHANGING",
        "if tried > rule.attempts or failure.kind in _UNCHANGING",
        "the number of attempts is the total",
        KERNEL,
    ),
    Mutant(
        "kernel/people.py",
        "if key in run.memory.replies:\n            return run.memory.replies[key]",
        "pass",
        "a question that was answered is not asked again",
        KERNEL,
    ),
    Mutant(
        "kernel/composite.py",
        "for fact in list(run.memory.below(step.visit, scope.prefix)):\n        scope.replay(fact)",
        "pass",
        "a composite that goes on takes up its children where they are",
        KERNEL,
    ),
    Mutant(
        "kernel/streams.py",
        "if ask not in live.answers.get(visit, ()):\n            values = self.values()",
        "if True:\n            values = self.values()",
        "a visit that is run again hears its recorded answers first",
        "reactive",
    ),
    Mutant(
        "kernel/scope.py",
        'if flat and outcome.status == "completed":',
        "if self.plan.workflow.flat:",
        "where outputs go by their own names, those of a failure do not",
        "agents",
    ),
    # Whether an earlier outcome stands in.
    Mutant(
        "reuse/recipe.py",
        'return digest([kind, parts["resolved"], parts["files"], parts["shared"]])',
        'return digest([kind, parts["resolved"], parts["files"]])',
        "a shared value that a pure type declares is a part of its key",
        "reuse",
        once=True,
    ),
    Mutant(
        "reuse/recipe.py",
        'parts["inputs"], parts["files"], parts["shared"], parts["upstream"]])',
        'parts["inputs"], parts["files"], parts["upstream"]])',
        "a shared value that an impure type declares is a part of its key",
        "reuse",
        once=True,
    ),
    Mutant(
        "reuse/recipe.py",
        'parts["files"], parts["shared"], parts["upstream"]])',
        'parts["files"], parts["shared"]])',
        "what comes after something new is executed again",
        "reuse",
    ),
    Mutant(
        "reuse/recipe.py",
        'files = {path: old for path, old in parts["files"].items() if path not in self.changed}',
        'files = parts["files"]',
        "a file that a visit changed is its output, not its input",
        "reuse",
    ),
    Mutant(
        "reuse/cache.py",
        'told = outcome.status == "completed" or (outcome.status == "failed" and failure not in ("timeout", "doubt"))',
        "told = True",
        "an effect of another run that may have happened is a doubt of this one",
        "reuse",
    ),
    Mutant(
        "reuse/cache.py",
        'entry.at <= own.metadata.get("completed", 0.0)',
        'entry.at < own.metadata.get("completed", 0.0)',
        "what judges the world is asked again once the workflow has completed",
        "reuse",
        explained="a run completes after its last visit ended, by a clock that would have to stand still in between",
    ),
    Mutant(
        "reuse/recipe.py",
        """return digest([_pure_key(parts), parts["upstream"]]) if call.planned.effect == "pure" else execution""",
        "return execution",
        "what comes of a pure node is the same wherever its outcome was found",
        "reuse",
    ),
    Mutant(
        "reuse/recipe.py",
        '"resolved": digest(call.params), "files": files})',
        '"resolved": digest(call.params)})',
        "in common no text is taken for a file",
        "reuse",
    ),
    Mutant(
        "reuse/store.py",
        "if path.name not in needed:",
        "if True:",
        "a blob stays for as long as an entry needs it",
        "reuse",
    ),
    Mutant(
        "reuse/claims.py",
        "os.pwrite(fd, data, 0)",
        "pass",
        "who died at a visit is found by the next run",
        "reuse",
    ),
    Mutant(
        "reuse/named_files.py",
        "target = arrow.end() == len(word)",
        "target = False",
        "what a command writes to is no input of it",
        "reuse",
    ),
    # What comes next.
    Mutant(
        "schedulers/reactive.py",
        "for values in flight.fed[: fact.seen]:",
        "for values in flight.fed:",
        "a visit that is tried again is handed what it had seen and no more",
        "reactive",
        once=True,
    ),
    Mutant(
        "schedulers/reactive.py",
        "in reversed(bad.values())",
        "in bad.values()",
        "of two visits of a node that failed, the later one is tried again",
        "reactive",
        once=True,
    ),
    Mutant(
        "schedulers/reactive.py",
        "for values in flight.fed[fact.seen :]:",
        "for values in flight.fed[fact.seen + 1 :]:",
        "what was pushed to a visit that did not look any more is not lost",
        "reactive",
    ),
    Mutant(
        "schedulers/reactive.py",
        "        if flight.pulled:  # it may look, but it will not push\n",
        "        if False:\n",
        "what was pushed to a pulled visit starts a pushed one after it",
        "reactive",
    ),
    Mutant(
        "schedulers/reactive.py",
        "if ring:",
        "if False:",
        "visits that wait for each other are told so",
        "reactive",
    ),
    Mutant(
        "schedulers/topological.py",
        "return [Stop(visit, why) for visit in self._running] if first else []",
        "return []",
        "a failure stops what runs beside it",
        "schedulers kernel",
    ),
    Mutant(
        "schedulers/topological.py",
        'return outcome.status != "skipped" and edge.guard.test(self._values)',
        "return edge.guard.test(self._values)",
        "a node that was skipped fires no edge with a condition",
        "schedulers kernel dialects",
    ),
    Mutant(
        "schedulers/topological.py",
        "self._ready.extendleft(reversed(self._bad))",
        "self._ready.extend(self._bad)",
        "what failed is tried again before anything else",
        "schedulers kernel",
    ),
    Mutant(
        "schedulers/routed.py",
        "        if n > limit:\n",
        "        if n > limit + 1:\n",
        "a node is visited as often as its limit says",
        "schedulers",
    ),
    Mutant(
        "schedulers/routed.py",
        "self._grace += max(self._graph.limits)",
        "pass",
        "a run that reached a limit can go on when it is reopened",
        "schedulers",
    ),
    # What is written down.
    Mutant(
        "storage/journal.py",
        "return rest if int(number) == crc32(rest) else None",
        "return rest",
        "a damaged record is noticed",
        "storage",
    ),
    Mutant(
        "storage/journal.py",
        "                os.ftruncate(fd, reader.end)",
        "                pass",
        "a bad tail is cut off before anything is appended",
        "storage",
    ),
    Mutant(
        "storage/journal.py",
        "            self._threads.dropped()\n            record = self._seal.close(record)",
        "            record = self._seal.close(record)",
        "a conversation that is written in another way is written whole",
        "storage",
    ),
    Mutant(
        "storage/lease.py",
        "if not lock.is_at(self._fd, self._path):",
        "if False:",
        "who lost its lease does not act any more",
        "storage",
    ),
    Mutant(
        "storage/lock.py",
        "if is_at(fd, path):",
        "if True:",
        "a lock on a file that was removed or replaced between our open and our lock is none",
        "storage",
    ),
    Mutant(
        "storage/lock.py",
        "if not _try(fd, fcntl.LOCK_SH):",
        "if True:",
        "who only looks does not keep anybody out",
        "storage",
    ),
    Mutant(
        "storage/inbox.py",
        "for name in sorted(_names(folder)))",
        "for name in reversed(sorted(_names(folder))))",
        "messages are taken oldest first",
        "storage",
    ),
    Mutant(
        "storage/sealing.py",
        "longest_first = sorted(self._names, key=len, reverse=True)",
        "longest_first = sorted(self._names, key=len)",
        "of two secrets that begin alike the longer one is sealed whole",
        "storage",
    ),
    Mutant(
        "storage/blobs.py",
        "if hashlib.sha256(data).hexdigest() != digest:",
        "if False:",
        "a damaged blob is noticed",
        "storage",
    ),
    # What may be run at all.
    Mutant(
        "planning/ancestry.py",
        "return bool(queue) and target in self._descendants(source)",
        "return False",
        "a reference reaches as far back as there are nodes",
        "planning",
        once=True,
    ),
    Mutant(
        "planning/build.py",
        "elif not ancestry.leads(root, node_id):",
        "elif False:",
        "what would be a race is refused",
        "planning",
    ),
    Mutant(
        "planning/build.py",
        "if inner.get(edge.source) != inner.get(edge.target):",
        "if False:",
        "no edge crosses the border of a loop",
        "planning",
    ),
    Mutant(
        "planning/build.py",
        'intent = effect == "impure" and not kind.composite',
        'intent = effect == "impure"',
        "a composite writes no intent",
        KERNEL,
    ),
    Mutant(
        "planning/inputs.py",
        "return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)",
        "return isinstance(value, kinds)",
        "true is no number",
        "planning",
    ),
    Mutant(
        "schedulers/router.py",
        "if policy.critical:",
        "if False:",
        "the failure of a critical node ends the run",
        "planning",
    ),
    Mutant(
        "planning/wires.py",
        "if portal in through:",
        "if False:",
        "a portal that leads into itself ends",
        "planning",
    ),
)
