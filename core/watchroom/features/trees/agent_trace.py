"""The authors of the lines of a tree, in the format of Agent Trace 0.1 (https://agent-trace.dev). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final
from uuid import UUID

from watchroom.features.trees.view import Author
from watchroom.model import HUMAN_PREFIX, Json, timestamp

if TYPE_CHECKING:
    from watchroom.features.trees.reads import FileLine

FORMAT: Final = "0.1"
"""The version of the specification in the form that its schema requires: without the last part."""
_OWN: Final = "dev.watchroom"
"""The key for data without a field in the format."""


def build_trace(
    files: Iterable[tuple[str, Sequence[FileLine]]], *, record_id: UUID, time: int, head: str, version: str
) -> dict[str, Json]:
    """Return the trace record of ``files``: paths, each with its lines. Lines that git wrote are left out.

    - ``time``: now, in nanoseconds since the epoch.
    - ``head``: the commit that is checked out; empty if there is none.
    - ``version``: the version of Watchroom.

    Line numbers are those of the working tree. The record says if lines are not committed.
    """
    traced: list[Json] = []
    authors: dict[str, Json] = {}
    has_uncommitted = False
    for path, lines in files:
        conversations, names = _describe_file(lines)
        if conversations:
            traced.append({"path": path, "conversations": conversations})
            authors[path] = names
            has_uncommitted = has_uncommitted or not all(each.is_committed for each in lines)
    record: dict[str, Json] = {
        "version": FORMAT,
        "id": str(record_id),
        "timestamp": timestamp(time),
        "tool": {"name": "watchroom", "version": version},
        "files": traced,
        "metadata": {_OWN: {"authors": authors, "has_uncommitted_lines": has_uncommitted}},
    }
    return {**record, "vcs": {"type": "git", "revision": head}} if head else record


def _describe_file(lines: Sequence[FileLine]) -> tuple[list[Json], list[Json]]:
    """Return the conversations of a file, and the name and grade of each conversation's author."""
    ranges: dict[Author, list[Json]] = {}
    numbered = enumerate(lines, 1)
    for author, group in groupby(numbered, key=lambda each: each[1].author):
        found = [*group]
        if author.grade != "git":
            text = "".join(f"{line.text}\n" for _, line in found)
            ranges.setdefault(author, []).append(
                {
                    "start_line": found[0][0],
                    "end_line": found[-1][0],
                    "content_hash": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
                }
            )
    conversations: list[Json] = [
        {"contributor": _contributor(author), "ranges": each} for author, each in ranges.items()
    ]
    names: list[Json] = [{"name": author.name, "grade": author.grade} for author in ranges]
    return conversations, names


def _contributor(author: Author) -> Mapping[str, Json]:
    if author.actor.startswith(HUMAN_PREFIX):
        return {"type": "human"}
    return {"type": "unknown" if author.grade == "external" else "ai"}
