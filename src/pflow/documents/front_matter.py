"""Front matter: the lines of YAML between two ``---`` at the top of a Markdown file.

It forgives one thing that YAML does not, as the tools do that people copy their agents from: a text without quotes may
contain ``: ``.
"""

from __future__ import annotations

import re

from pflow.documents.position import Malformed, malformed
from pflow.documents.source import Source, decode, failure

# A key of the first level, with a text beside it that may go on in indented lines.
_text = re.compile(r"^([\w.-]+:[ \t]+)([^\s\"'\[\]{}|>&*!%@`#,?-].*(?:\n[ \t]+[^\s#].*)*)", re.MULTILINE)
_comment = re.compile(r"[ \t]+#.*$", re.MULTILINE)
_colon = re.compile(r":(?=\s|$)")


def split(text: str | bytes, file: str) -> tuple[Source, str]:
    """The front matter of a document, which need not have any, and what follows it."""
    text = decode(text, file).replace("\r\n", "\n") if text.strip() else ""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return Source(file, {}), text.strip()
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
    try:
        if not end:
            raise malformed(0, 'the front matter is not closed: "---" is missing after it', "end it with a line of ---")
        return _read("\n".join(["", *lines[1:end]]), file), "\n".join(lines[end + 1 :]).strip()
    except Malformed as error:
        raise failure(error, text, file) from None


def _read(text: str, file: str) -> Source:
    if all(line.lstrip().startswith("#") for line in text.split("\n") if line.strip()):
        return Source(file, {}, text)
    from pflow.documents import yaml_text  # only files with front matter pay for it

    quoted = _text.sub(_quoted, text)
    try:
        data, spot = yaml_text.parse(quoted)
    except Malformed as error:
        raise failure(error, quoted, file) from None
    return Source(file, data, quoted, spot)


def _quoted(match: re.Match[str]) -> str:
    """A key and its text, in quotes where it holds what would make a mapping of it."""
    text = _comment.sub("", match[2]).rstrip()
    return match[1] + ("'{}'".format(text.replace("'", "''")) if _colon.search(text) else match[2])
