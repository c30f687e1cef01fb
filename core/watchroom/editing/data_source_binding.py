"""What ties a buffer to a source: flush, refresh, diff, accept (spec 4 §1.4, §5.3).

Nothing is lost, whatever is called in whichever order: a flush writes only over the version that the buffer
is based on; a refresh merges; and what `accept_source` puts aside is given back to the caller.
"""

from __future__ import annotations

from typing import Final

from watchroom.editing.buffer import ContentChanged, ExclusiveBuffer, TextChange
from watchroom.editing.buffer_messages import BufferMessages
from watchroom.editing.conflict_markers import ConflictMarkers, describe_markers, move_markers
from watchroom.editing.response import (
    NO_FLAG,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.editing.source import DataSource, ReadOnlySourceError, SourceText, StaleSourceError
from watchroom.errors import ApprovalOutdated, WatchroomError
from watchroom.merge import find_marker_offsets, find_open_regions, merge, text_with_markers, unified_diff
from watchroom.texts import Language

_FLAGS: Final = {
    WorkflowState.PERSIST_PENDING: TextEditFlag.PERSIST_PENDING,
    WorkflowState.OUT_OF_SYNC: TextEditFlag.OUT_OF_SYNC,
}

FLUSHED: Final = "flushed"
"""The code of the answer to a flush that brought source and buffer together."""


class DataSourceBinding:
    """Binds ``buffer`` to ``source``, from which it is filled; one with a ``base`` goes on from there, and
    the buffer is left as it is. ``marks`` are then those that an earlier binding had. Belongs to one thread
    at a time. Raises `WatchroomError` where the source cannot be read, or its text cannot be taken.
    """

    def __init__(
        self,
        buffer: ExclusiveBuffer,
        source: DataSource,
        *,
        name: str = "buffer",
        language: Language = "en",
        base: SourceText | None = None,
        marks: ConflictMarkers = (),
    ) -> None:
        self._buffer = buffer
        self._source = source
        self._words = BufferMessages(name, language)
        self._base = base or source.read()
        self._newest = self._base.version
        self._edit = self._base.edit
        self._refreshing = False
        self.discarded: list[str] = []
        """The texts that `accept_source` put aside, oldest first: the caller keeps them."""
        taken = buffer.try_update(self._base.text) if base is None else None
        if taken is not None and not taken.ok:
            raise ValueError(taken.message)
        self._marks = marks
        self._known = buffer.snapshot()
        buffer.subscribe(self._follow)

    @property
    def base(self) -> SourceText:
        """The source as the buffer knows it: what it was filled from, or flushed to, or merged with last."""
        return self._base

    @property
    def marks(self) -> ConflictMarkers:
        """Where the lines begin that a merge put around its conflicts and that still stand in the buffer."""
        return self._marks

    @property
    def is_changed(self) -> bool:
        """Whether the buffer holds something that the source does not."""
        return self._buffer.snapshot() != self._base.text

    @property
    def state(self) -> WorkflowState:
        if self._refreshing:
            return WorkflowState.REFRESHING
        if (self._newest, self._edit) != (self._base.version, self._base.edit):
            return WorkflowState.OUT_OF_SYNC
        return WorkflowState.PERSIST_PENDING if self.is_changed else WorkflowState.SYNCED

    @property
    def flags(self) -> TextEditFlag:
        flags = _FLAGS.get(self.state, NO_FLAG)
        if self.state is WorkflowState.OUT_OF_SYNC and self.is_changed:
            flags |= TextEditFlag.PERSIST_PENDING | TextEditFlag.EXTERNAL_CONFLICT
        return flags

    def update(self) -> None:
        """The first pass (spec 4 §7.2): look whether the source has moved on. Raises `WatchroomError`."""
        self._newest, self._edit = self._source.version(), self._source.edit()

    def flush(self, message: str = "") -> TextEditResponse:
        """Write the buffer to the source, if that has not moved on; one that has the very text of the buffer
        by now needs no writing."""
        text = self._buffer.snapshot()
        if not self.is_changed:
            return self._told(TextEditStatus.NO_OP, "nothing_to_flush")
        if self._marks:
            return self._unresolved()
        try:
            version = self._source.write(text, self._base.version, message, edit=self._base.edit)
        except StaleSourceError:
            return self._moved(text)
        except ReadOnlySourceError as error:
            return self._failed("read_only", error.reason, TextEditFlag.PERSIST_READ_ONLY)
        except ApprovalOutdated:
            # Nothing of the source is the matter: whoever let it be approved asks again.
            raise
        except WatchroomError as error:
            return self._failed("flush_failed", error)
        return self._in_step(text, version)

    def refresh(self) -> TextEditResponse:
        """Take in what others wrote to the source: as it is where the buffer was not changed, else merged
        with that. Where both changed the same lines, both stand in the buffer, between marks."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._failed("source_unreadable", error)
        before = self._buffer.snapshot()
        self._take_note(source)
        if self.state is not WorkflowState.OUT_OF_SYNC:
            return self._told(TextEditStatus.NO_OP, "nothing_new", version=source.version)
        if self._marks:
            return self._unresolved()
        regions = merge(self._base.text, source.text, before) if self.is_changed else ()
        conflicts = len(find_open_regions(regions))
        merged = text_with_markers(regions) if regions else source.text
        self._refreshing = True
        try:
            taken = self._buffer.try_update(merged)
        finally:
            self._refreshing = False
        if not taken.ok:
            return self._failed("buffer_refused", taken.message)
        self._base = source
        self._marks = find_marker_offsets(regions)
        delta = len(merged) - len(before)
        if conflicts:
            code, status = "merged_with_conflicts", TextEditStatus.EXTERNAL_CONFLICT
        else:
            code, status = "merged" if self.is_changed else "refreshed", TextEditStatus.SUCCESS
        return self._told(status, code, delta=delta, count=conflicts, version=source.version)

    def diff(self) -> TextEditResponse:
        """What the buffer would change in the source as it is now."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._failed("source_unreadable", error)
        self._take_note(source)
        text = unified_diff(source.text, self._buffer.snapshot(), f"v{source.version}", self._words.name)
        if not text:
            return self._told(TextEditStatus.NO_OP, "no_difference", version=source.version)
        code = "differs"
        if self.state is WorkflowState.OUT_OF_SYNC:
            code = "differs_moved" if self.is_changed else "differs_behind"
        return self._told(TextEditStatus.SUCCESS, code, diff=text, version=source.version)

    def accept_source(self) -> TextEditResponse:
        """Take the source as it is; what the buffer held is put aside in `discarded`."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._failed("source_unreadable", error)
        before, was_changed = self._buffer.snapshot(), self.is_changed
        taken = self._buffer.try_update(source.text)
        if not taken.ok:
            return self._failed("buffer_refused", taken.message)
        if was_changed and before != source.text:
            self.discarded.append(before)
        self._base, self._marks = source, ()
        self._take_note(source)
        delta = len(source.text) - len(before)
        if not taken.value:
            return self._told(TextEditStatus.NO_OP, "accepted_same", version=source.version)
        return self._told(TextEditStatus.SUCCESS, "accepted", delta=delta, version=source.version)

    def notice(self, problem: WatchroomError | None = None) -> str:
        """What to tell a model of how the buffer stands to its source, in a line (spec 4 §5.3);
        ``problem`` says why it could not be looked at."""
        if problem is not None:
            return self._words.summary("source_unreadable", reason=problem.message(self._words.language))
        return self._words.summary(
            self._standing(), version=self._base.version, newest=self._newest, lines=self._lines_of_marks()
        )

    def _standing(self) -> str:
        if self.state is WorkflowState.OUT_OF_SYNC:
            by_hand = "_by_hand" if self._is_edited_by_hand() else ""
            return f"out_of_sync{by_hand}_changed" if self.is_changed else f"out_of_sync{by_hand}"
        if self.state is WorkflowState.PERSIST_PENDING:
            return "persist_unresolved" if self._marks else "persist_pending"
        return "synced" if self._base.version or self._base.text else "synced_new"

    def _take_note(self, source: SourceText) -> None:
        """So the source stands."""
        self._newest, self._edit = source.version, source.edit

    def _is_edited_by_hand(self) -> bool:
        """Whether an edit made by hand is all that the source has and the buffer does not know."""
        return self._newest == self._base.version and self._edit != self._base.edit

    def _follow(self, changed: ContentChanged) -> None:
        before, self._known = self._known, self._buffer.snapshot()
        change = changed.change or TextChange(0, len(before), self._known)
        self._marks = move_markers(self._marks, before, change)

    def _unresolved(self) -> TextEditResponse:
        return self._told(TextEditStatus.EXTERNAL_CONFLICT, "unresolved", lines=self._lines_of_marks())

    def _lines_of_marks(self) -> str:
        return describe_markers(self._known, self._marks)

    def _moved(self, text: str) -> TextEditResponse:
        """The answer to a flush that came too late; not if it is the same text that came first, as after a
        crash between the writing and the noting of it."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._failed("source_unreadable", error)
        if source.text == text:
            if not source.edit:
                return self._in_step(text, source.version)
            self._base = source
        self._take_note(source)
        if not self.is_changed:
            return self._told(TextEditStatus.NO_OP, "nothing_to_flush")
        return self._told(
            TextEditStatus.EXTERNAL_CONFLICT,
            "flush_conflict_by_hand" if self._is_edited_by_hand() else "flush_conflict",
            version=self._base.version,
            newest=self._newest,
        )

    def _in_step(self, text: str, version: int) -> TextEditResponse:
        """Buffer and source have the same text."""
        self._base = SourceText(text, version)
        self._take_note(self._base)
        self._marks = ()
        return self._told(TextEditStatus.SUCCESS, FLUSHED, version=version)

    def _failed(
        self, code: str, problem: WatchroomError | str, flag: TextEditFlag = NO_FLAG
    ) -> TextEditResponse:
        reason = problem if isinstance(problem, str) else problem.message(self._words.language)
        return self._told(
            TextEditStatus.PERSIST_FAILURE, code, flag=flag | TextEditFlag.DIAGNOSTIC_HINT, reason=reason
        )

    def _told(
        self,
        status: TextEditStatus,
        code: str,
        *,
        delta: int = 0,
        diff: str | None = None,
        flag: TextEditFlag = NO_FLAG,
        **values: object,
    ) -> TextEditResponse:
        return TextEditResponse(
            status=status,
            workflow_state=self.state,
            flags=self.flags | flag,
            summary=self._words.summary(code, **values),
            guidance=self._words.guidance(code, **values),
            metrics=TextEditMetrics(delta=delta, new_length=len(self._buffer.snapshot())),
            code=code,
            diff=diff,
        )
