"""What each tool gives back. Failures have the shape of `Failure`, conflicts that of `ConflictFailure`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from watchroom.editing import TextEditCandidate, TextEditMetrics
from watchroom.model import Json

Sender = Annotated[str, Field(serialization_alias="from")]


class Result(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    success: bool = True

    def told(self) -> dict[str, Json]:
        """The result as its caller gets it: without what does not apply."""
        return self.model_dump(by_alias=True, exclude_none=True)


class Failure(BaseModel):
    """A refusal: a stable code, what happened, and what to do next."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    success: Literal[False] = False
    error: str
    message: str
    suggestion: str


class ConflictFailure(Failure):
    """A write that came too late, with everything needed to recover (spec 1 FR-3.5)."""

    is_conflict: Literal[True] = True
    conflict_id: int
    base_version: int
    current_version: int
    current_content: str | None
    current_author: str | None
    current_message: str | None
    your_content: str | None
    missed_changes: str | None
    """A unified diff from the base version to the current one; None where there is no base."""


class Saved(Result):
    filename: str
    version: int
    size: int


class Content(Result):
    agent_id: str
    filename: str
    content: str
    size: int


class Files(Result):
    agent_id: str
    files: list[str]
    count: int


class Deleted(Result):
    filename: str


class Delivered(Result):
    to: str
    filename: str
    delivery: int


class InboxEntry(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    sender: Sender
    filename: str
    message: str
    timestamp: str
    size: int
    delivery: int
    read: bool
    acknowledged: bool


class Inbox(Result):
    count: int
    handoffs: list[InboxEntry]


class HandoffContent(Result):
    sender: Sender
    filename: str
    content: str
    message: str
    timestamp: str
    delivery: int


class Acknowledged(Result):
    sender: Sender
    filename: str
    delivery: int


class CollabWritten(Result):
    filepath: str
    version: int
    overwrote_version: int | None = None
    overwrote_author: str | None = None


class Resolved(Result):
    filepath: str
    version: int
    conflicts: list[int]


class Dismissed(Result):
    filepath: str
    conflict: int


class MarkedAsSeen(Result):
    row: int
    path: str


class Reverted(Result):
    filepath: str
    version: int
    """The version that is on disk again, 0 if none: then the file is gone."""


class CollabContent(Result):
    filepath: str
    content: str
    version: int
    current_version: int
    author: str
    message: str
    timestamp: str
    checksum: str
    notice: str | None = None
    """Told once: how a person settled a conflict of the reader's on this file."""


class CollabFile(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    filepath: str
    version: int
    author: str
    timestamp: str
    size: int


class CollabFiles(Result):
    files: list[CollabFile]
    count: int


class HistoryEntry(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    version: int
    author: str
    message: str
    timestamp: str
    checksum: str
    size: int


class CollabHistoryResult(Result):
    filepath: str
    history: list[HistoryEntry]
    count: int


class RolledBack(Result):
    filepath: str
    new_version: int
    restored_version: int


class Answered(Result):
    request: int
    outcome: str
    """approved, rejected, mixed, edited, replied or chosen."""


class Steered(Result):
    agent_id: str
    session_id: str | None = None
    row: int


class Sent(Result):
    """``row`` is the message's number."""

    to: str
    row: int


class Spawned(Result):
    agent_id: str
    role: str
    layer: str


class Terminated(Result):
    ended: list[str]
    """The agents that this ended, the one that was named first."""


class ListedAgent(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    agent_id: str
    role: str
    made_by: str
    ended: bool | None = None


class Agents(Result):
    agents: list[ListedAgent]


class TaskEnded(Result):
    task_id: str
    status: str


class DocumentCreated(Result):
    doc_id: str
    version: int
    field_types: dict[str, str]


class DocumentSnapshot(Result):
    doc_id: str
    version: int
    snapshot: dict[str, JsonValue]
    field_types: dict[str, str]


class FieldValue(Result):
    doc_id: str
    field_name: str
    field_type: str
    value: JsonValue
    version: int
    length: int | None = None
    """Code points of a text, elements of a set, keys of a map."""
    author: str | None = None
    """Who wrote a register last."""
    timestamp: str | None = None

    def told(self) -> dict[str, Json]:
        # Null is a value, too.
        return {**super().told(), "value": self.model_dump()["value"]}


class FieldWritten(Result):
    doc_id: str
    field_name: str
    version: int


class TextEdited(FieldWritten):
    operation: str
    position: int
    inserted_count: int
    deleted_count: int
    length: int | None = None
    """Of the text as the caller knows it: where its next positions count."""
    notice: str | None = None
    """Told where others have written to the text since the caller read it."""


class SetEdited(FieldWritten):
    operation: str
    element: str | None = None
    exists: bool | None = None
    elements: list[str] | None = None
    count: int | None = None
    notice: str | None = None


class CounterEdited(FieldWritten):
    operation: str
    value: int


class StateMerged(Result):
    doc_id: str
    version: int
    merged_fields: list[str]


class FileRead(Result):
    path: str
    content: str
    version: int


class FileWritten(Result):
    ok: Literal[True] = True
    path: str
    version: int
    size: int


class BufferOpened(Result):
    """``source`` is ZONE:PATH; ``tools`` are those that the buffer has as it stands; ``markdown`` shows
    it."""

    buffer: str
    source: str
    tools: list[str]
    markdown: str


class BufferClosed(Result):
    buffer: str


class BufferEdited(Result):
    """What an editing tool answers (spec 4 §4.1.3), and the same as Markdown (spec 4 §6). Where it did not do
    what was wanted, ``error``, ``message`` and ``suggestion`` are those of a failure."""

    error: str | None = None
    message: str | None = None
    suggestion: str | None = None
    status: str
    workflow_state: str
    flags: list[str]
    summary: str
    guidance: str | None = None
    metrics: TextEditMetrics
    candidates: list[TextEditCandidate] | None = None
    diff: str | None = None
    notice: str | None = None
    """How the buffer stands to its source, where both are not the same."""
    operation_id: str | None = None
    """What the rows of the operation, and its debug records, carry as well."""
    markdown: str


class ListedFile(BaseModel):
    model_config = ConfigDict(frozen=True, defer_build=True)

    name: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    """Bytes; 0 of what is no file."""


class Listed(Result):
    files: list[ListedFile]


class WorkspaceInfo(Result):
    """All that is in a task's folder, in the spec's names (spec 2, getWorkspaceInfo)."""

    file_count: Annotated[int, Field(serialization_alias="fileCount")]
    dir_count: Annotated[int, Field(serialization_alias="dirCount")]
    total_size: Annotated[int, Field(serialization_alias="totalSize")]
    last_modified: Annotated[str | None, Field(serialization_alias="lastModified")] = None
    truncated: bool | None = None
    """True where there is more than is counted."""


class CommandRan(Result):
    """A command that ended with exit code 0 (spec 2, property 7)."""

    stdout: str
    stderr: str
    exit_code: Annotated[int, Field(serialization_alias="exitCode")]
    changed: list[str] | None = None
    """The files that it made, changed or removed, by their paths: the first hundred."""
    more_changed: Annotated[int | None, Field(serialization_alias="moreChanged")] = None
    """How many more there are."""
    pending: int | None = None
    """How many changes there was no time to look at: the next call does."""
    left_out: Annotated[int | None, Field(serialization_alias="leftOut")] = None
    """How much lies too deep to be named, or may not be looked into."""
    quarantined: list[str] | None = None
    """The git repositories that it made, which were moved away: the first hundred."""
    notice: str | None = None
    """The same in words."""
    cut: bool | None = None
    """True where it printed more than is kept."""
