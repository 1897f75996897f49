"""Conversations: the message contexts of a chat. Each is immutable, and is another one and a step.

A step sets fields and splices messages. Conversations that grew out of each other share one list, of which each sees
a beginning, so n turns take the room of n messages; written down, a conversation is the steps that the reader lacks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

TAG = "__type"
KIND = "conversation"
FIELDS = ("context_id", "context_type", "provider", "model", "system_instructions")
DEFAULTS = dict.fromkeys(FIELDS, "") | {"context_type": "main"}
PRIORITY = 50
Mode = Literal["prepend", "append"]


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message; a pinned one stays when a window leaves others out, the higher priorities first."""

    id: str
    role: str
    content: str
    pinned: bool = False
    priority: int = PRIORITY


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a conversation differs from the one before it."""

    set: dict[str, str] = {}
    at: int = 0  # where messages are dropped and added
    drop: int = 0
    add: tuple[Message, ...] = ()


_encode = msgspec.json.Encoder().encode


class Conversation:
    """A message context; every change makes another one."""

    __slots__ = ("_log", "_size", "base", "key", "step", *FIELDS)

    context_id: str
    context_type: str
    provider: str
    model: str
    system_instructions: str
    key: str  # names the content and how it came about
    base: Conversation | None
    step: Change
    _log: list[Message]
    _size: int

    def __init__(self, base: Conversation | None, step: Change) -> None:
        put = object.__setattr__
        put(self, "base", base)
        put(self, "step", step)
        for name in FIELDS:
            before = DEFAULTS[name] if base is None else getattr(base, name)
            put(self, name, step.set.get(name, before))
        log, size = _spliced(base, step)
        put(self, "_log", log)
        put(self, "_size", size)
        seed = base.key.encode() if base is not None else b""
        put(self, "key", hashlib.blake2b(seed + _encode(step), digest_size=12).hexdigest())

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f'a context does not change: make another one with flow.context.update(…), not "{name} ="')

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conversation) and (self.key == other.key or self.whole() == other.whole())

    def __hash__(self) -> int:
        return hash(self.context_id)

    def __repr__(self) -> str:
        return f"<{self.context_type} context {self.context_id!r}, {len(self)} messages>"

    @property
    def message_history(self) -> tuple[Message, ...]:
        """The messages, oldest first."""
        return tuple(self._log[: self._size])

    @property
    def last(self) -> Message | None:
        """The newest message."""
        return self._log[self._size - 1] if self._size else None

    # ── changes ──

    def setting(self, **fields: str) -> Conversation:
        """With other fields; this one itself where nothing differs."""
        changed = {name: value for name, value in fields.items() if getattr(self, name) != value}
        return Conversation(self, Change(changed)) if changed else self

    def splicing(self, at: int, drop: int, add: Iterable[Message]) -> Conversation:
        """With some messages dropped and others added at a place."""
        return Conversation(self, Change({}, at, drop, tuple(add)))

    def adding(self, messages: Iterable[Mapping[str, Any]], mode: Mode = "append") -> Conversation:
        """With more messages; one whose id is there already takes that one's place."""
        made, fresh = self, []
        for n, given in enumerate(messages):
            message = message_of(given, f"{self.key[:10]}.{n}")
            at = made.find(message.id) if given.get("id") else -1
            if at < 0:
                fresh.append(message)
            elif made._log[at] != message:
                made = made.splicing(at, 1, [message])
        return made.splicing(len(made) if mode == "append" else 0, 0, fresh) if fresh else made

    def find(self, message_id: str) -> int:
        """Where the message of this id is, or -1."""
        return next((n for n, message in enumerate(self.message_history) if message.id == message_id), -1)

    def without(self, ids: Iterable[str]) -> Conversation:
        """Without the messages of these ids."""
        made, gone = self, set(ids)
        for at in reversed([n for n, message in enumerate(self.message_history) if message.id in gone]):
            made = made.splicing(at, 1, ())
        return made

    def with_history(self, messages: Iterable[Mapping[str, Any] | Message]) -> Conversation:
        """With these messages in place of its own; what is the same at either end is kept."""
        old = self.message_history
        new = [message_of(one, f"{self.key[:10]}.{n}") for n, one in enumerate(messages)]
        head = 0
        while head < min(len(old), len(new)) and old[head] == new[head]:
            head += 1
        tail = 0
        while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        if head + tail == len(old) == len(new):
            return self
        return self.splicing(head, len(old) - head - tail, new[head : len(new) - tail])

    def window(self, limit: int) -> tuple[Message, ...]:
        """At most so many messages: the pinned ones by priority, then the newest, all in their order."""
        messages = self.message_history
        if len(messages) <= limit:
            return messages
        pinned = [n for n, message in enumerate(messages) if message.pinned]
        kept = set(sorted(pinned, key=lambda n: (-messages[n].priority, n))[:limit])
        newest = (n for n in range(len(messages) - 1, -1, -1) if not messages[n].pinned)
        while len(kept) < limit and (n := next(newest, -1)) >= 0:
            kept.add(n)
        return tuple(messages[n] for n in sorted(kept))

    # ── in plain data ──

    def whole(self) -> dict[str, Any]:
        """Everything, as plain data."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in FIELDS}
        return {**fields, "message_history": [msgspec.to_builtins(message) for message in self.message_history]}

    def brief(self) -> dict[str, Any]:
        """What it is, without its messages."""
        fields = {name: getattr(self, name) for name in FIELDS if name != "system_instructions"}
        return {**fields, "messages": len(self)}


def _spliced(base: Conversation | None, step: Change) -> tuple[list[Message], int]:
    """The list that a step leads to; at the end of the shared list, that list itself grows."""
    if base is None:
        return list(step.add), len(step.add)
    if not step.add and not step.drop:
        return base._log, base._size
    if step.at == base._size == len(base._log) and not step.drop:
        base._log.extend(step.add)
        return base._log, len(base._log)
    own = base._log[: base._size]
    own[step.at : step.at + step.drop] = step.add
    return own, len(own)


def message_of(given: Mapping[str, Any] | Message, default_id: str) -> Message:
    """A message from what node code wrote."""
    if isinstance(given, Message):
        return given
    role, content = given.get("role"), given.get("content")
    if role not in ("user", "assistant", "system"):
        raise ValueError(f"a message's role is user or assistant, not {role!r}")
    if not isinstance(content, str):
        raise ValueError(f"a message's content is text, not {type(content).__name__}")
    priority = given.get("priority")
    return Message(
        str(given.get("id") or default_id),
        role,
        content,
        bool(given.get("pinned", False)),
        PRIORITY if priority is None else int(priority),
    )


def new(context_id: str, messages: Iterable[Mapping[str, Any]] = (), **fields: str) -> Conversation:
    """A conversation from nothing."""
    made = [message_of(one, f"{context_id}.{n}") for n, one in enumerate(messages)]
    return Conversation(None, Change({"context_id": context_id, **fields}, add=tuple(made)))


def from_data(data: Mapping[str, Any]) -> Conversation:
    """A conversation of which ``whole`` made these data, in either spelling of the names."""
    fields = {name: str(data.get(name, data.get(_camel(name), DEFAULTS[name]))) for name in FIELDS}
    history = data.get("message_history", data.get("messageHistory", ()))
    return new(fields.pop("context_id") or "main", history, **fields)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def whole(value: Any) -> Any:
    """For encoders: a conversation as plain data."""
    if isinstance(value, Conversation):
        return value.whole()
    raise TypeError(f"a value of type {type(value).__name__} cannot be written")


def brief(value: Any) -> Any:
    """A value in which conversations stand without their messages."""
    return _with(value, Conversation.brief)


def spelled_out(value: Any) -> Any:
    """A value in which conversations are plain data, for whoever knows nothing of them."""
    return _with(value, Conversation.whole)


def _with(value: Any, shown: Callable[[Conversation], dict[str, Any]]) -> Any:
    if isinstance(value, Conversation):
        return shown(value)
    if type(value) is dict:
        return {key: _with(item, shown) for key, item in value.items()}
    return [_with(item, shown) for item in value] if type(value) is list else value


class Threads:
    """The conversations that a file holds so far: what is written next says only what they lack."""

    __slots__ = ("_known", "fresh")

    def __init__(self) -> None:
        self._known: dict[str, Conversation] = {}
        self.fresh: dict[str, Conversation] = {}  # of the record at hand

    def encode(self, value: Any) -> dict[str, Any]:
        """A conversation, written in terms of those before it."""
        if not isinstance(value, Conversation):
            raise TypeError(f"a value of type {type(value).__name__} cannot be written")
        steps: list[Change] = []
        at: Conversation | None = value
        while at is not None and at.key not in self._known and at.key not in self.fresh:
            steps.append(at.step)
            self.fresh[at.key] = at
            at = at.base
        made: dict[str, Any] = {TAG: KIND, "key": value.key}
        return made if not steps else {**made, "base": at.key if at else "", "steps": steps[::-1]}

    def written(self) -> None:
        """The record at hand is in the file."""
        self._known |= self.fresh
        self.fresh = {}

    def dropped(self) -> None:
        """The record at hand will be written in another way."""
        self.fresh = {}

    def decode(self, made: Any) -> Any:
        """What a record says, with its conversations; what is the user's own is left as it is."""
        if type(made) is list:
            return [self.decode(item) for item in made]
        if type(made) is not dict:
            return made
        match made.get(TAG):
            case "conversation":
                return self._read(made)
            case "dict":
                return {TAG: "dict", "value": {key: self.decode(item) for key, item in made["value"].items()}}
            case _:
                return {key: self.decode(item) for key, item in made.items()}

    def _read(self, made: dict[str, Any]) -> Conversation:
        if "steps" in made:
            found = self._known.get(made["base"])
            for step in made["steps"]:
                found = Conversation(found, msgspec.convert(step, Change))
                found = self._known.setdefault(found.key, found)
        return self._known[made["key"]]
