"""HTML as plain text or Markdown: what a reader sees, in order, without what a browser does with it.

Whatever is inside blocks is collected as *inline* text until a block begins or ends; then it becomes a line of the
result. Tags that were never closed do no harm: the next block closes them.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin

_DROPPED = frozenset({"script", "style", "template", "svg", "noscript", "iframe", "object", "select", "canvas"})
_HEADINGS = {f"h{n}": n for n in range(1, 7)}
_BLOCK_NAMES = (
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form header"
    " html legend main nav ol p section summary table tbody tfoot thead ul pre li tr td th caption title"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split()) | frozenset(_HEADINGS)
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "code": "`", "kbd": "`", "samp": "`"}
_ENDS = frozenset({"body", "li", "ol", "table", "td", "th", "tr", "ul"})  # no mark or link goes on beyond these
_BLANKS = re.compile(r"[ \t\r\n\f\u00a0]+")
_DEPTH = 20  # of lists, quotes and marks, as far as it is shown


class Page(NamedTuple):
    """A page's title and text."""

    title: str
    text: str


def convert(html: str, url: str = "", markdown: bool = False) -> Page:
    """Read a page; ``url`` is where relative links begin."""
    reader = _Reader(url, markdown)
    reader.feed(html)
    reader.close()
    return reader.page()


class _Inline(NamedTuple):
    """An inline tag that is open: where its text begins, and what a link leads to."""

    tag: str
    start: int
    href: str = ""


class _List:
    """A list that is open."""

    def __init__(self, ordered: bool) -> None:
        self.ordered = ordered
        self.count = 0
        self.width = 2  # of its markers: what is inside its items begins there

    def marker(self) -> str:
        self.count += 1
        made = f"{self.count}. " if self.ordered else "- "
        self.width = len(made)
        return made


class _Table:
    """A table that is open; ``rows`` hold the texts of its cells."""

    def __init__(self) -> None:
        self.rows: list[list[str]] = []
        self.in_cell = False

    def add(self, text: str) -> None:
        cell = self.rows[-1][-1]
        self.rows[-1][-1] = f"{cell} {text}" if cell else text


class _Reader(HTMLParser):
    def __init__(self, url: str, markdown: bool) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._markdown = markdown
        self._lines: list[tuple[str, bool]] = []  # text, and whether it follows the line before without a blank one
        self._inline: list[str] = []
        self._open: list[_Inline] = []
        self._dropped = ""  # the tag inside which nothing counts, and how often it is open
        self._drops = 0
        self._lists: list[_List] = []
        self._marker = ""  # of a list item whose first line is still to come
        self._tables: list[_Table] = []
        self._quotes = 0
        self._heading = 0
        self._pre: list[str] | None = None
        self._language = ""
        self._title: str | None = None
        self._in_title = False
        self._was_item = False  # whether the last line belongs to a list

    def page(self) -> Page:
        self._flush()
        while self._tables:
            self._end_table()
        made: list[str] = []
        for text, tight in self._lines:
            made.append(("\n" if tight else "\n\n") if made else "")
            made.append(text)
        return Page(" ".join((self._title or "").split()), "".join(made))

    # ── what the parser reports ──

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._dropped or tag in _DROPPED:
            self._dropped = self._dropped or tag
            self._drops += tag == self._dropped
            return
        given = {name: value or "" for name, value in attrs}
        if tag in _BLOCKS:
            self._start_block(tag, given)
        elif tag == "br":
            self._say("\n")
        elif tag == "hr":
            self._flush()
            self._add("---" if self._markdown else "")
        elif tag == "img":
            self._image(given)
        elif tag == "base" and given.get("href"):
            self._url = urljoin(self._url, given["href"])
        elif self._pre is None and (tag == "a" or tag in _MARKS) and len(self._open) < _DEPTH:
            if tag == "a" and any(inline.tag == "a" for inline in self._open):
                self.handle_endtag("a")  # there are no links in links
            self._open.append(_Inline(tag, len(self._inline), given.get("href", "")))
        elif self._pre is not None and tag == "code":
            self._language = self._language or _language(given)

    def handle_endtag(self, tag: str) -> None:
        if self._dropped:
            self._drops -= tag == self._dropped
            if not self._drops:
                self._dropped = ""
            return
        if tag in _BLOCKS:
            self._end_block(tag)
        elif any(inline.tag == tag for inline in self._open):
            while self._close_inline() != tag:
                continue

    def handle_data(self, data: str) -> None:
        if self._dropped:
            return
        if self._in_title:
            self._title = (self._title or "") + data
        elif self._pre is not None:
            self._pre.append(data)
        else:
            self._inline.append(_BLANKS.sub(" ", data))

    # ── blocks ──

    def _start_block(self, tag: str, attrs: dict[str, str]) -> None:
        self._flush(go_on=tag not in _ENDS)
        if tag == "title":
            self._in_title = self._title is None
        elif tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag == "pre":
            self._pre, self._language = [], _language(attrs)
        elif tag in ("ul", "ol"):
            self._lists.append(_List(tag == "ol"))
        elif tag == "li":
            self._marker = self._lists[-1].marker() if self._lists else "- "
        elif tag == "blockquote":
            self._quotes += 1
        elif tag == "table":
            self._tables.append(_Table())
        elif self._tables:
            self._start_part(self._tables[-1], tag)

    def _start_part(self, table: _Table, tag: str) -> None:
        if tag == "tr":
            table.rows.append([])
            table.in_cell = False
        elif tag in ("td", "th"):
            if not table.rows:
                table.rows.append([])
            table.rows[-1].append("")
            table.in_cell = True

    def _end_block(self, tag: str) -> None:
        if tag == "pre" and self._pre is not None:
            self._end_pre()
            return
        self._flush(go_on=tag not in _ENDS)
        if tag == "title":
            self._in_title = False
        elif tag in _HEADINGS:
            self._heading = 0
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
            self._marker = ""
        elif tag == "li":
            self._marker = ""
        elif tag == "blockquote":
            self._quotes = max(0, self._quotes - 1)
        elif tag == "table" and self._tables:
            self._end_table()
        elif tag in ("td", "th") and self._tables:
            self._tables[-1].in_cell = False

    def _end_pre(self) -> None:
        text = "".join(self._pre or []).strip("\n").rstrip()
        self._pre = None
        if text and self._markdown and not self._in_cell():
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            text = f"{fence}{self._language}\n{text}\n{fence}"
        self._add(text)

    def _end_table(self) -> None:
        rows = [row for row in self._tables.pop().rows if any(row)]
        width = max(map(len, rows), default=0)
        if self._in_cell():  # a table in a cell of another: its texts, one after the other
            self._tables[-1].add(" ".join(cell for row in rows for cell in row if cell))
        elif width == 1:  # laid out, not tabulated
            for row in rows:
                self._add(row[0])
        elif rows:
            self._add("\n".join(self._table_lines(rows, width)))

    def _table_lines(self, rows: list[list[str]], width: int) -> list[str]:
        if not self._markdown:
            return [" | ".join(row) for row in rows]
        full = [[cell.replace("|", "\\|") for cell in row] + [""] * (width - len(row)) for row in rows]
        return [f"| {' | '.join(row)} |" for row in (full[0], ["---"] * width, *full[1:])]

    # ── inline texts ──

    def _say(self, text: str) -> None:
        if self._pre is not None:
            self._pre.append(text)
        else:
            self._inline.append(text)

    def _image(self, attrs: dict[str, str]) -> None:
        alt, source = " ".join(attrs.get("alt", "").split()), attrs.get("src", "")
        if self._markdown and alt and source and not source.startswith("data:"):
            self._say(f"![{alt}]({self._link(source)})")

    def _close_inline(self) -> str:
        """Close the innermost inline tag: its text gets its marks."""
        tag, start, href = self._open.pop()
        text = "".join(self._inline[start:])
        bare = text.strip()
        if self._markdown and bare:
            lead, tail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            link = self._link(href)
            made = f"{_MARKS[tag]}{bare}{_MARKS[tag]}" if tag in _MARKS else f"[{bare}]({link})" if link else bare
            self._inline[start:] = [f"{lead}{made}{tail}"]
        return tag

    def _link(self, href: str) -> str:
        """Where a link leads, from anywhere; nothing for a script or a place in the same page."""
        if not href or href.startswith("#"):
            return ""
        try:
            made = urljoin(self._url, href.strip())
        except ValueError:
            return ""
        return "" if made.lower().startswith(("javascript:", "data:")) else made.replace(" ", "%20").replace(")", "%29")

    def _flush(self, go_on: bool = False) -> None:
        """Make a line of the inline text so far; what is open inline may go on in the next."""
        going_on = [inline._replace(start=0) for inline in self._open] if go_on else []
        while self._open:
            self._close_inline()
        self._open = going_on
        text = "\n".join(" ".join(line.split()) for line in "".join(self._inline).split("\n")).strip()
        self._inline.clear()
        if text and self._heading and self._markdown and not self._in_cell():
            text = f"{'#' * self._heading} {' '.join(text.split())}"
        self._add(text)

    def _add(self, text: str) -> None:
        """A line, or several: into the open cell, or indented as list and quote ask for."""
        if not text:
            return
        if self._in_cell():
            self._tables[-1].add(" ".join(text.split()))
            return
        tight = False
        if self._lists or self._marker:
            indent = " " * sum(one.width for one in self._lists[-_DEPTH:-1])
            rest = indent + " " * (self._lists[-1].width if self._lists else 2)
            text = (indent + self._marker if self._marker else rest) + text.replace("\n", f"\n{rest}")
            tight = bool(self._marker) and self._was_item
            self._marker = ""
        self._was_item = bool(self._lists)
        if self._quotes and self._markdown:
            lead = "> " * min(self._quotes, _DEPTH)
            text = lead + text.replace("\n", f"\n{lead}")
        self._lines.append((text, tight))

    def _in_cell(self) -> bool:
        return bool(self._tables) and self._tables[-1].in_cell


def _language(attrs: dict[str, str]) -> str:
    found = re.search(r"\blang(?:uage)?-([\w+#-]+)", attrs.get("class", ""))
    return found[1] if found else ""
