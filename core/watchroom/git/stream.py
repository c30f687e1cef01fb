"""The stream that `git fast-import` reads, and the trailers that say where a commit is from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from watchroom.git.names import COMMITTER, author, date, message_text, one_line, quoted_path

ROW: Final = "Watchroom-Row"
"""The trailer with the row that a commit stands for; with several, their numbers and ranges."""
UNTIL: Final = "Watchroom-Until"
"""The trailer with the row up to which a commit and those before it have everything but what is open."""
OPEN: Final = "Watchroom-Open"
"""The trailer with the first row of each session that was open then."""
GROUPING: Final = "Watchroom-Per"
"""The trailer that says what has a commit of its own."""
FILE_MODES: Final = ("100644", "100755")
"""Of a file that may not be executed, and of one that may."""
_MAX_VALUE: Final = 1200


class FileChange(NamedTuple):
    """A file of a commit: its path in the tree, and its content, None where it is deleted."""

    path: str
    data: bytes | None
    mode: str = FILE_MODES[0]


class CommitText(NamedTuple):
    """A commit but for its files and its parent: who made it, when (nanoseconds since the epoch), the first
    line of its message, what follows it, and its trailers."""

    actor: str
    time: int
    subject: str
    body: str
    trailers: Sequence[tuple[str, str]]

    def render(self) -> bytes:
        """The message in UTF-8. The trailers are a paragraph of their own, so that nothing that an agent
        wrote is read as one."""
        lines = [f"{name}: {one_line(value, _MAX_VALUE)}" for name, value in self.trailers]
        parts = (self.subject, message_text(self.body), "\n".join(lines))
        return ("\n\n".join(part for part in parts if part) + "\n").encode("utf-8", "replace")


def render_commit(
    ref: str, text: CommitText, changes: Iterable[FileChange], *, mark: int | None = None, parent: str = ""
) -> bytes:
    """A commit on ``ref`` with ``text`` and ``changes``, called ``mark`` from then on. ``parent`` is an id or
    a mark (``:5``); without one it is the commit before it on that ref, if this stream has made one."""
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
    # What is deleted goes first: a folder may have taken a file's place.
    return b"".join([*lines, *later, b"\n"])


def render_note(ref: str, text: CommitText, notes: Mapping[str, str], parent: str = "") -> bytes:
    """A commit on ``ref`` with ``text`` that gives each of the commits in ``notes`` (ids or marks) a note."""
    lines = [render_commit(ref, text, (), parent=parent)[:-1]]
    for commit, note in notes.items():
        data = (one_line(note, _MAX_VALUE) + "\n").encode()
        lines.append(f"N inline {commit}\ndata {len(data)}\n".encode() + data)
    return b"".join([*lines, b"\n"])


def trailers_of(message: str) -> dict[str, str]:
    """The trailers of a commit with ``message``: those of its last paragraph."""
    last = message.rstrip().rpartition("\n\n")[2]
    pairs = (line.partition(": ") for line in last.splitlines())
    return {name: value for name, separator, value in pairs if separator}


def render_rows(rows: Sequence[int]) -> str:
    """Ascending ``rows`` as numbers and ranges: ``3 5-8``."""
    spans: list[list[int]] = []
    for row in rows:
        if spans and spans[-1][1] == row - 1:
            spans[-1][1] = row
        else:
            spans.append([row, row])
    return " ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def parse_rows(text: str) -> list[tuple[int, int]]:
    """The spans (first and last) that ``text`` names, as `render_rows` makes it; what is none is left out."""
    spans = []
    for each in text.split():
        first, _, last = each.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            spans.append((int(first), int(last or first)))
    return spans
