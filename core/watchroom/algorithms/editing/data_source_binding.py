"""The binding of a buffer to a source: flush, refresh, diff, accept (EDIT-1.4, EDIT-5.3).

No text is lost in any order of these calls. A flush only overwrites the version on which the buffer is based.
A refresh merges. A text that is replaced by `accept_source` is kept in `DataSourceBinding.discarded`.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from watchroom.algorithms.editing.conflict_markers import ConflictMarkers, describe_markers, move_markers
from watchroom.algorithms.editing.editor import BufferMessages, ContentChanged, TextChange, TextEditor
from watchroom.algorithms.editing.response import (
    NO_FLAG,
    TextEditFlag,
    TextEditMetrics,
    TextEditResponse,
    TextEditStatus,
    WorkflowState,
)
from watchroom.algorithms.merge import (
    MergedStyles,
    diff_apart_from_style,
    find_marker_offsets,
    find_open_regions,
    merge,
    merge_styles,
    text_with_markers,
)
from watchroom.errors import ApprovalOutdated, WatchroomError
from watchroom.texts import Language

_FLAGS: Final = {
    WorkflowState.PERSIST_PENDING: TextEditFlag.PERSIST_PENDING,
    WorkflowState.OUT_OF_SYNC: TextEditFlag.OUT_OF_SYNC,
}

FLUSHED: Final = "flushed"
"""The code of the response to a flush after which source and buffer are equal."""


class SourceText(NamedTuple):
    """The text of a source.

    - ``text``: empty if the source does not exist yet.
    - ``version``: 0 if the source does not exist yet.
    - ``edit``: the row of an external edit whose text replaces the version's text; 0 if there is none.
    """

    text: str
    version: int
    edit: int = 0


class DataSource(Protocol):
    """An object with a text and versions to which a buffer can be bound (EDIT-5.3).

    Examples are a private file, a shared file, a task file and a whiteboard.
    """

    def version(self) -> int:
        """Return the current version. This is called often, so it must be fast."""
        ...

    def edit(self) -> int:
        """Return the row number of an external edit that replaces the current version; 0 if there is none.

        Raise `WatchroomError` if the source cannot be read.
        """
        ...

    def read(self) -> SourceText:
        """Return the current text. Raise `WatchroomError` if the source cannot be read."""
        ...

    def write(self, text: str, expected: int, message: str = "", *, edit: int = 0) -> int:
        """Write ``text`` as the next version, and return that version.

        - ``expected``: the version that must be current. Raise `StaleSourceError` if it is not.
        - ``message``: the description of the new version, if the source keeps descriptions.
        - ``edit``: the external edit that must be current, as returned by `edit`.

        Raise `ReadOnlySourceError` if this agent must not write, and any other `WatchroomError` if the write
        fails. After an error, nothing has changed.
        """
        ...


class StaleSourceError(Exception):
    """The source has another version or external edit than expected."""


class ReadOnlySourceError(Exception):
    """This agent must not write to the source. ``reason``: the reason."""

    def __init__(self, reason: str | WatchroomError) -> None:
        super().__init__(reason)
        self.reason = reason


class DataSourceBinding:
    """The binding of ``buffer`` to ``source``. Not thread-safe.

    A new binding fills the buffer from the source. It raises `WatchroomError` if the source cannot be read,
    and ValueError if the buffer refuses the text.

    - ``name``: the name of the buffer in responses.
    - ``language``: the language of the responses.
    - ``base``: the base of an earlier binding, which this binding continues. The buffer is left unchanged.
    - ``markers``: the markers of the earlier binding.
    """

    def __init__(
        self,
        buffer: TextEditor,
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
        """Texts that were replaced by `accept_source`, oldest first. The caller stores them."""
        taken = buffer.try_update(self._base.text) if base is None else None
        if taken is not None and not taken.ok:
            raise ValueError(taken.message)
        self._markers = markers
        self._content = buffer.snapshot()
        buffer.subscribe(self._on_buffer_changed)

    @property
    def base(self) -> SourceText:
        """The source when it was last loaded into the buffer, merged, or written by a flush."""
        return self._base

    @property
    def markers(self) -> ConflictMarkers:
        """Positions of the conflict markers of a merge that are still in the buffer."""
        return self._markers

    @property
    def is_changed(self) -> bool:
        """Whether the buffer differs from its base."""
        return self._buffer.snapshot() != self._base.text

    @property
    def state(self) -> WorkflowState:
        """The state of the buffer relative to the last known state of the source."""
        if self._refreshing:
            return WorkflowState.REFRESHING
        if (self._newest, self._edit) != (self._base.version, self._base.edit):
            return WorkflowState.OUT_OF_SYNC
        return WorkflowState.PERSIST_PENDING if self.is_changed else WorkflowState.SYNCED

    @property
    def flags(self) -> TextEditFlag:
        """The state as flags. A changed buffer that is out of sync also has the flags of a conflict."""
        flags = _FLAGS.get(self.state, NO_FLAG)
        if self.state is WorkflowState.OUT_OF_SYNC and self.is_changed:
            flags |= TextEditFlag.PERSIST_PENDING | TextEditFlag.EXTERNAL_CONFLICT
        return flags

    def update(self) -> None:
        """Check the source for a newer version. This is the first pass (EDIT-7.2).

        Raise `WatchroomError` if the source cannot be read.
        """
        self._newest, self._edit = self._source.version(), self._source.edit()

    def flush(self, message: str = "") -> TextEditResponse:
        """Write the buffer to the source with ``message``, unless the source has changed.

        Nothing is written if the source already has the text. Raise `ApprovalOutdated`. All other errors are
        in the response.
        """
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
            # The source is intact. The caller must request a new approval.
            raise
        except WatchroomError as error:
            return self._fail("flush_failed", error)
        return self._mark_flushed(text, version)

    def refresh(self) -> TextEditResponse:
        """Load the newer version of the source, or merge it if the buffer has changes.

        If both changed the same lines, the buffer gets both between conflict markers.
        """
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
        """Return a unified diff of the changes that a flush would make in the current source."""
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
        """Replace the buffer by the source. The earlier text is appended to `discarded`."""
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
        """Return one line for a model about the state of the binding (EDIT-5.3).

        ``problem``: the error when the source was read, None if there was none.
        """
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
            by_hand = "_by_hand" if self._differs_by_external_edit() else ""
            return f"out_of_sync{by_hand}_changed" if self.is_changed else f"out_of_sync{by_hand}"
        if self.state is WorkflowState.PERSIST_PENDING:
            return "persist_unresolved" if self._markers else "persist_pending"
        return "synced" if self._base.version or self._base.text else "synced_new"

    def _describe_merged_style(self, styles: MergedStyles) -> str:
        """Return a text about the buffer's style after a merge; empty if all texts have the same style."""
        if not styles.differ:
            return ""
        return self._messages.summary("style_merged", style=self._messages.describe_style(styles.merged))

    def _note_source(self, source: SourceText) -> None:
        """Record the current version of the source."""
        self._newest, self._edit = source.version, source.edit

    def _differs_by_external_edit(self) -> bool:
        """Return whether an external edit is the only difference between the source and the base."""
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
        """Respond to a flush of ``text`` whose base is no longer current.

        The flush succeeds if the source already has the text. This happens after a crash between the write
        and its record.
        """
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
            "flush_conflict_by_hand" if self._differs_by_external_edit() else "flush_conflict",
            version=self._base.version,
            newest=self._newest,
        )

    def _mark_flushed(self, text: str, version: int) -> TextEditResponse:
        """Record that buffer and source have the same text."""
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
        """Return a response.

        ``note``: an addition to the summary. ``more``: an addition to the guidance, from the buffer.
        """
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
