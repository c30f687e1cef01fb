"""Rows in git's form: paths, authors, dates, messages, and the stream for `git fast-import`. Pure.

Texts of agents are made safe: no path leads out of the tree or into git's own files, and no name or message
leaves its line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from watchroom.kernel.checkout.layout import ROOTS, document_place, place
from watchroom.kernel.zones import DOCUMENTS
from watchroom.model import Row, Zone

ROW: Final = "Watchroom-Row"
"""The trailer with the rows of a commit, as numbers and ranges."""
UNTIL: Final = "Watchroom-Until"
"""The trailer with the row up to which the history is complete, except for open sessions."""
OPEN: Final = "Watchroom-Open"
"""The trailer with the first rows of the sessions that were open at the time of the commit."""
GROUPING: Final = "Watchroom-Per"
"""The trailer that records whether there is a commit for each version or for each session."""
FILE_MODES: Final = ("100644", "100755")
"""The modes of a non-executable file, and of an executable file."""
_MAX_VALUE: Final = 1200
"""Maximum characters of a trailer or a note."""
DOMAIN: Final = "watchroom.invalid"
COMMITTER: Final = f"Watchroom <watchroom@{DOMAIN}>"
TASKS: Final = "tasks"
"""The folder in the tree with a folder for each task."""
MAX_MESSAGE: Final = 4000
"""Maximum characters of a message."""
MAX_SUBJECT: Final = 200
_LAST_SECOND: Final = 253_402_300_799
_UNKNOWN: Final = "unknown"
_SHORT_NAMES: Final = re.compile(r"g[^/]*~\d+(\..*)?")
"""Matches Windows' short names of git's own files."""
_OWN_NAMES: Final = frozenset({".git", ".gitmodules"})
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class FileChange(NamedTuple):
    """A changed file of a commit: its path in the tree, its content (None if deleted), and its mode."""

    path: str
    data: bytes | None
    mode: str = FILE_MODES[0]


class CommitText(NamedTuple):
    """The author, time and message of a commit.

    - ``actor``: the author.
    - ``time``: nanoseconds since the epoch.
    - ``subject``, ``body``: the first line of the message, and the rest.
    - ``trailers``: names and values.
    """

    actor: str
    time: int
    subject: str
    body: str
    trailers: Sequence[tuple[str, str]]

    def render(self) -> bytes:
        """Return the message in UTF-8. The trailers are a separate paragraph, so that no text by an agent is
        read as a trailer."""
        lines = [f"{name}: {one_line(value, _MAX_VALUE)}" for name, value in self.trailers]
        parts = (self.subject, message_text(self.body), "\n".join(lines))
        return ("\n\n".join(part for part in parts if part) + "\n").encode("utf-8", "replace")


def render_commit(
    ref: str, text: CommitText, changes: Iterable[FileChange], *, mark: int | None = None, parent: str = ""
) -> bytes:
    """Return a commit on ``ref`` with ``text`` and ``changes``.

    - ``mark``: the number by which later commits of the stream refer to it.
    - ``parent``: an id or a mark (``:5``); default: the previous commit of this stream on ``ref``, if any.
    """
    message = text.render()
    when = date(text.time)
    lines = [f"commit {ref}\n".encode()]
    if mark is not None:
        lines.append(f"mark :{mark}\n".encode())
    lines.append(f"author {author(text.actor)} {when}\ncommitter {COMMITTER} {when}\n".encode())
    lines += [b"data %d\n" % len(message), message, b"\n"]
    if parent:
        lines.append(f"from {parent}\n".encode())
    later = []
    for change in changes:
        if change.data is None:
            lines.append(b"D " + quoted_path(change.path) + b"\n")
        else:
            head = f"M {change.mode} inline ".encode() + quoted_path(change.path)
            later += [head + b"\ndata %d\n" % len(change.data), change.data, b"\n"]
    # Deletions go first: a folder may have taken the place of a file.
    return b"".join([*lines, *later, b"\n"])


def render_note(ref: str, text: CommitText, notes: Mapping[str, str], parent: str = "") -> bytes:
    """Return a commit on ``ref`` that adds ``notes``: texts by the id or mark of a commit."""
    lines = [render_commit(ref, text, (), parent=parent)[:-1]]
    for commit, note in notes.items():
        data = (one_line(note, _MAX_VALUE) + "\n").encode()
        lines.append(f"N inline {commit}\ndata {len(data)}\n".encode() + data)
    return b"".join([*lines, b"\n"])


def trailers_of(message: str) -> dict[str, str]:
    """Return the trailers of ``message``, which are its last paragraph."""
    last = message.rstrip().rpartition("\n\n")[2]
    pairs = (line.partition(": ") for line in last.splitlines())
    return {name: value for name, separator, value in pairs if separator}


def render_rows(rows: Sequence[int]) -> str:
    """Return ascending ``rows`` as numbers and ranges: ``3 5-8``."""
    spans: list[list[int]] = []
    for row in rows:
        if spans and spans[-1][1] == row - 1:
            spans[-1][1] = row
        else:
            spans.append([row, row])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def parse_rows(text: str) -> list[tuple[int, int]]:
    """Return the ranges (first and last) in ``text``, the inverse of `render_rows`. Skip other words."""
    spans = []
    for each in text.split():
        first, _, last = each.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            spans.append((int(first), int(last or first)))
    return spans


def session_of(row: Row) -> str:
    """Return the session (``AGENT/SESSION``) whose call wrote ``row``, empty if there is none."""
    call = row.detail.get("call")
    session = call.partition("/")[0] if isinstance(call, str) else ""
    return f"{row.actor}/{session}" if session else ""


def tree_path(zone: Zone, path: str) -> str | None:
    """Return the path in the tree of ``path`` in ``zone``, None if such paths have no files."""
    if zone == "file":
        return f"{TASKS}/{path}"
    if zone in DOCUMENTS:
        return "/".join(document_place(zone, path))
    return "/".join(place(zone, path)) if zone in ROOTS else None


@lru_cache(maxsize=4096)
def is_safe_path(path: str) -> bool:
    """Whether git can check ``path`` out safely on every file system.

    It must be beneath the root, and no variant of its spelling may be one of git's own files.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    if "\0" in path:
        return False
    return all(_is_safe_part(part) for part in path.split("/"))


def _is_safe_part(part: str) -> bool:
    if part in ("", ".", ".."):
        return False
    for each in part.split("\\"):
        seen = "".join(character for character in each if unicodedata.category(character) != "Cf")
        seen = seen.casefold().partition(":")[0].rstrip(". ")
        if seen in _OWN_NAMES or _SHORT_NAMES.fullmatch(seen):
            return False
    return True


def quoted_path(path: str) -> bytes:
    """Return ``path`` quoted for `git fast-import`."""
    quoted = "".join(_escape(character) for character in path)
    return f'"{quoted}"'.encode()


def _escape(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return f"\\{ord(character):03o}" if character < " " else character


@lru_cache(maxsize=1024)
def author(actor: str) -> str:
    """Return ``actor`` in git's form of a commit's author."""
    name = one_line(actor, MAX_SUBJECT, "<>").strip(" .,:;\"'") or _UNKNOWN
    return f"{name} <{'.'.join(name.replace(':', '.').split())}@{DOMAIN}>"


def date(time: int) -> str:
    """Return ``time`` (nanoseconds since the epoch) in git's date format, in UTC."""
    return f"{min(max(time // 10**9, 0), _LAST_SECOND)} +0000"


def one_line(text: str, limit: int, without: str = "") -> str:
    """Return the first ``limit`` characters of ``text`` as one line of visible characters. ``without``:
    characters to leave out."""
    shown = "".join(" " if _is_hidden(each) else each for each in text[: 4 * limit] if each not in without)
    return " ".join(shown.split())[:limit]


def message_text(text: str) -> str:
    """Return the lines of ``text``, with visible characters only, as the body of a message."""
    return "\n".join(one_line(line, MAX_MESSAGE) for line in text[:MAX_MESSAGE].splitlines()).strip()


def subject(row: Row, path: str) -> str:
    """Return the first line of the message of the commit of ``row``, whose file is at ``path``."""
    line = next((line for line in message_text(row.message).splitlines() if line), "")
    return line[:MAX_SUBJECT] or one_line(f"{row.tool} {path}", MAX_SUBJECT)


def _is_hidden(character: str) -> bool:
    return not (" " <= character <= "~") and unicodedata.category(character) in _HIDDEN
