"""The inbox: messages arrive once, in order, and whole."""

from __future__ import annotations

from pathlib import Path

from pflow.storage import inbox


def test_messages_come_in_the_order_they_were_posted(tmp_path: Path) -> None:
    """The oldest message is first, and draining does not remove any."""
    posted = [(inbox.post(tmp_path, {"n": n, "data": b"\xff"}), {"n": n, "data": b"\xff"}) for n in range(20)]
    assert inbox.drain(tmp_path) == posted
    assert inbox.drain(tmp_path) == posted


def test_a_removed_message_is_gone(tmp_path: Path) -> None:
    """Removing is for one message, and may be repeated after a crash."""
    first, second = (inbox.post(tmp_path, {"n": n}) for n in range(2))
    inbox.remove(tmp_path, first)
    inbox.remove(tmp_path, first)
    assert [name for name, _ in inbox.drain(tmp_path)] == [second]
    assert inbox.pending(tmp_path)
    inbox.remove(tmp_path, second)
    assert not inbox.pending(tmp_path)


def test_a_run_without_messages_has_no_inbox(tmp_path: Path) -> None:
    """Looking makes nothing."""
    assert not inbox.pending(tmp_path)
    assert inbox.drain(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_message_is_passed_over(tmp_path: Path) -> None:
    """Temporary, damaged and foreign files do not get in the way of messages."""
    name = inbox.post(tmp_path, {"text": "hello"})
    for other, data in ((".x.tmp", b"{}"), (".y.json", b"{}"), ("0.json", b'{"te'), ("1.json", b"[]"), ("n", b"{}")):
        (tmp_path / "inbox" / other).write_bytes(data)
    (tmp_path / "inbox" / "2.json").write_bytes(b'{"a":"\xff"}')
    (tmp_path / "inbox" / "3.json").mkdir()
    assert inbox.drain(tmp_path) == [(name, {"text": "hello"})]
