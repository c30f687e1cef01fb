"""The binding of a buffer to a source: flush, refresh, diff, accept (EDIT-1.4, EDIT-5.3).

Nothing is lost, in whichever order these are called: a flush writes only over the version that the buffer is
based on; a refresh merges; and what `accept_source` discards is returned to the caller."""

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
from watchroom.merge import (
    MergedStyles,
    diff_apart_from_style,
    find_marker_offsets,
    find_open_regions,
    merge,
    merge_styles,
    text_with_markers,
)
from watchroom.texts import Language

_FLAGS: Final = {
    WorkflowState.PERSIST_PENDING: TextEditFlag.PERSIST_PENDING,
    WorkflowState.OUT_OF_SYNC: TextEditFlag.OUT_OF_SYNC,
}

FLUSHED: Final = "flushed"
"""The code of the answer to a flush that brought source and buffer together."""


class DataSourceBinding:
    """Binds ``buffer`` to ``source`` and fills it from there. With a ``base`` it continues an earlier
    binding: the buffer is left as it is, and ``markers`` are those of that binding. ``name`` and ``language``
    are for its responses. Belongs to one thread at a time. Raises `WatchroomError` where the source cannot be
    read, ValueError where the buffer refuses its text."""

    def __init__(
        self,
        buffer: ExclusiveBuffer,
        source: DataSource,
        *,
        name: str = "buffer",
        language: Language = "en",
        base: SourceText | None = None,
        markers: ConflictMarkers = (),
    ) -> None:
        self._buffer = buffer
        self._source = source
        self._messages = BufferMessages(name, language)
        self._base = base or source.read()
        self._newest = self._base.version
        self._edit = self._base.edit
        self._refreshing = False
        self.discarded: list[str] = []
        """The texts that `accept_source` put aside, oldest first: the caller keeps them."""
        taken = buffer.try_update(self._base.text) if base is None else None
        if taken is not None and not taken.ok:
            raise ValueError(taken.message)
        self._markers = markers
        self._content = buffer.snapshot()
        buffer.subscribe(self._on_buffer_changed)

    @property
    def base(self) -> SourceText:
        """The source's text and version that the buffer was last filled from, flushed to, or merged with."""
        return self._base

    @property
    def markers(self) -> ConflictMarkers:
        """The positions of conflict markers that a merge wrote and that are still in the buffer."""
        return self._markers

    @property
    def is_changed(self) -> bool:
        """Whether the buffer differs from its base."""
        return self._buffer.snapshot() != self._base.text

    @property
    def state(self) -> WorkflowState:
        """How the buffer relates to its source as that was last looked at."""
        if self._refreshing:
            return WorkflowState.REFRESHING
        if (self._newest, self._edit) != (self._base.version, self._base.edit):
            return WorkflowState.OUT_OF_SYNC
        return WorkflowState.PERSIST_PENDING if self.is_changed else WorkflowState.SYNCED

    @property
    def flags(self) -> TextEditFlag:
        """The state as flags; a changed buffer that is out of sync has those of a conflict as well."""
        flags = _FLAGS.get(self.state, NO_FLAG)
        if self.state is WorkflowState.OUT_OF_SYNC and self.is_changed:
            flags |= TextEditFlag.PERSIST_PENDING | TextEditFlag.EXTERNAL_CONFLICT
        return flags

    def update(self) -> None:
        """The first pass (EDIT-7.2): look for a newer version of the source. Raises `WatchroomError`."""
        self._newest, self._edit = self._source.version(), self._source.edit()

    def flush(self, message: str = "") -> TextEditResponse:
        """Write the buffer to the source with ``message``, if the source has not changed; nothing is written
        where it already has the buffer's text. Raises `ApprovalOutdated`; any other error is the response."""
        text = self._buffer.snapshot()
        if not self.is_changed:
            return self._respond(TextEditStatus.NO_OP, "nothing_to_flush")
        if self._markers:
            return self._respond_unresolved()
        try:
            version = self._source.write(text, self._base.version, message, edit=self._base.edit)
        except StaleSourceError:
            return self._answer_stale_flush(text)
        except ReadOnlySourceError as error:
            return self._fail("read_only", error.reason, TextEditFlag.PERSIST_READ_ONLY)
        except ApprovalOutdated:
            # The source is not at fault: the approval has to be requested again.
            raise
        except WatchroomError as error:
            return self._fail("flush_failed", error)
        return self._mark_flushed(text, version)

    def refresh(self) -> TextEditResponse:
        """Take in the source's newer version: as it is where the buffer was not changed, else merged. Where
        both changed the same lines, both stay in the buffer, between conflict markers."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._fail("source_unreadable", error)
        before = self._buffer.snapshot()
        self._note_source(source)
        if self.state is not WorkflowState.OUT_OF_SYNC:
            return self._respond(TextEditStatus.NO_OP, "nothing_new", version=source.version)
        if self._markers:
            return self._respond_unresolved()
        merged, conflicts, note = source.text, 0, ""
        markers: ConflictMarkers = ()
        if self.is_changed:
            styles = merge_styles(self._base.text, source.text, before)
            regions = merge(self._base.text, source.text, before)
            lines = text_with_markers(regions)
            merged, conflicts = styles.apply(lines), len(find_open_regions(regions))
            markers = tuple(styles.apply_offset(lines, at) for at in find_marker_offsets(regions))
            note = self._describe_merged_style(styles)
        self._refreshing = True
        try:
            taken = self._buffer.try_update(merged)
        finally:
            self._refreshing = False
        if not taken.ok:
            return self._fail("buffer_refused", taken.message)
        self._base = source
        self._markers = markers
        delta = len(merged) - len(before)
        if conflicts:
            code, status = "merged_with_conflicts", TextEditStatus.EXTERNAL_CONFLICT
        else:
            code, status = "merged" if self.is_changed else "refreshed", TextEditStatus.SUCCESS
        return self._respond(
            status,
            code,
            delta=delta,
            note=note,
            more=taken.message,
            count=conflicts,
            version=source.version,
        )

    def diff(self) -> TextEditResponse:
        """What a flush would change in the source as it is now, in unified form."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._fail("source_unreadable", error)
        self._note_source(source)
        text, styles = diff_apart_from_style(
            source.text, self._buffer.snapshot(), f"v{source.version}", self._messages.name
        )
        if not text and styles is None:
            return self._respond(TextEditStatus.NO_OP, "no_difference", version=source.version)
        code = "differs"
        if self.state is WorkflowState.OUT_OF_SYNC:
            code = "differs_moved" if self.is_changed else "differs_behind"
        note = ""
        if styles is not None:
            old, new = map(self._messages.describe_style, styles)
            note = self._messages.summary("style_differs", before=old, after=new)
        return self._respond(
            TextEditStatus.SUCCESS, code, diff=text or None, note=note, version=source.version
        )

    def accept_source(self) -> TextEditResponse:
        """Replace the buffer by the source; what it held is appended to `discarded`."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._fail("source_unreadable", error)
        before, was_changed = self._buffer.snapshot(), self.is_changed
        taken = self._buffer.try_update(source.text)
        if not taken.ok:
            return self._fail("buffer_refused", taken.message)
        if was_changed and before != source.text:
            self.discarded.append(before)
        self._base, self._markers = source, ()
        self._note_source(source)
        delta = len(source.text) - len(before)
        if not taken.value:
            return self._respond(TextEditStatus.NO_OP, "accepted_same", version=source.version)
        return self._respond(
            TextEditStatus.SUCCESS, "accepted", delta=delta, more=taken.message, version=source.version
        )

    def notice(self, problem: WatchroomError | None = None) -> str:
        """One line for a model about how the buffer relates to its source (EDIT-5.3); ``problem`` is why
        the source could not be read, if it could not."""
        if problem is not None:
            return self._messages.summary(
                "source_unreadable", reason=problem.message(self._messages.language)
            )
        return self._messages.summary(
            self._notice_code(),
            version=self._base.version,
            newest=self._newest,
            lines=self._describe_markers(),
        )

    def _notice_code(self) -> str:
        if self.state is WorkflowState.OUT_OF_SYNC:
            by_hand = "_by_hand" if self._has_outside_edit() else ""
            return f"out_of_sync{by_hand}_changed" if self.is_changed else f"out_of_sync{by_hand}"
        if self.state is WorkflowState.PERSIST_PENDING:
            return "persist_unresolved" if self._markers else "persist_pending"
        return "synced" if self._base.version or self._base.text else "synced_new"

    def _describe_merged_style(self, styles: MergedStyles) -> str:
        """Which style the buffer got by a merge; empty if there was nothing to merge in it."""
        if not styles.differ:
            return ""
        return self._messages.summary("style_merged", style=self._messages.describe_style(styles.merged))

    def _note_source(self, source: SourceText) -> None:
        """So the source stands."""
        self._newest, self._edit = source.version, source.edit

    def _has_outside_edit(self) -> bool:
        """Whether an edit made by hand is all that the source has and the buffer does not know."""
        return self._newest == self._base.version and self._edit != self._base.edit

    def _on_buffer_changed(self, changed: ContentChanged) -> None:
        before, self._content = self._content, self._buffer.snapshot()
        change = changed.change or TextChange(0, len(before), self._content)
        self._markers = move_markers(self._markers, before, change)

    def _respond_unresolved(self) -> TextEditResponse:
        return self._respond(TextEditStatus.EXTERNAL_CONFLICT, "unresolved", lines=self._describe_markers())

    def _describe_markers(self) -> str:
        return describe_markers(self._content, self._markers)

    def _answer_stale_flush(self, text: str) -> TextEditResponse:
        """The answer to a flush that came too late; not if it is the same text that came first, as after a
        crash between the writing and the noting of it."""
        try:
            source = self._source.read()
        except WatchroomError as error:
            return self._fail("source_unreadable", error)
        if source.text == text:
            if not source.edit:
                return self._mark_flushed(text, source.version)
            self._base = source
        self._note_source(source)
        if not self.is_changed:
            return self._respond(TextEditStatus.NO_OP, "nothing_to_flush")
        return self._respond(
            TextEditStatus.EXTERNAL_CONFLICT,
            "flush_conflict_by_hand" if self._has_outside_edit() else "flush_conflict",
            version=self._base.version,
            newest=self._newest,
        )

    def _mark_flushed(self, text: str, version: int) -> TextEditResponse:
        """Buffer and source have the same text."""
        self._base = SourceText(text, version)
        self._note_source(self._base)
        self._markers = ()
        return self._respond(TextEditStatus.SUCCESS, FLUSHED, version=version)

    def _fail(
        self, code: str, problem: WatchroomError | str, flag: TextEditFlag = NO_FLAG
    ) -> TextEditResponse:
        reason = problem if isinstance(problem, str) else problem.message(self._messages.language)
        return self._respond(
            TextEditStatus.PERSIST_FAILURE, code, flag=flag | TextEditFlag.DIAGNOSTIC_HINT, reason=reason
        )

    def _respond(
        self,
        status: TextEditStatus,
        code: str,
        *,
        delta: int = 0,
        diff: str | None = None,
        flag: TextEditFlag = NO_FLAG,
        note: str = "",
        more: str = "",
        **values: object,
    ) -> TextEditResponse:
        """``note`` is added to the summary, ``more``, which comes from the buffer, to the guidance."""
        guidance = self._messages.guidance(code, **values) or ""
        return TextEditResponse(
            status=status,
            workflow_state=self.state,
            flags=self.flags | flag,
            summary=f"{self._messages.summary(code, **values)} {note}".strip(),
            guidance=f"{guidance} {more}".strip() or None,
            metrics=TextEditMetrics(delta=delta, new_length=len(self._buffer.snapshot())),
            code=code,
            diff=diff,
        )
