"""`Store`: the common base of all services."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain

from watchroom import validation
from watchroom.errors import ApprovalOutdated, InvalidPath, NotFound, NotText, PathBlocked
from watchroom.features.config.agent_versions import AgentVersions
from watchroom.features.config.registry import Registry
from watchroom.kernel.background import Background
from watchroom.kernel.call_context import CallContext, Seen
from watchroom.kernel.checkout.host import CheckoutHost
from watchroom.kernel.checkout.layout import EDITED
from watchroom.kernel.checkout.materializer import Materializer
from watchroom.kernel.commit import GroupCommit
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.file_versions import EXECUTABLE, blob_of, is_executable
from watchroom.kernel.zones import DOCUMENTS, ZONES
from watchroom.model import Appended, Row, Write, Zone
from watchroom.platform.files import NotAFile


@dataclass(frozen=True, slots=True)
class Store:
    """The parts of an open workspace that services use.

    - ``journal``: the rows.
    - ``commits``: appends rows. Several threads share one sync to disk.
    - ``checkout``: writes the files of rows.
    - ``host``: knows whether this checkout is the host of a shared journal.
    - ``background``: timers, and subscribers to new rows.
    - ``registry``: the registered agents and the settings.
    - ``agent_versions``: the versions that agents have seen.
    """

    journal: Journal
    commits: GroupCommit
    checkout: Materializer
    host: CheckoutHost
    background: Background
    registry: Registry
    agent_versions: AgentVersions = field(default_factory=AgentVersions)

    def write(self, draft: Write) -> Appended:
        """Commit ``draft``. Return the outcome. A conflict is an outcome that the caller reports.

        Errors with a refused row:

        - `PathBlocked`: another file is in the way.
        - `ApprovalOutdated`: a condition of the call's approval no longer holds.

        Errors without a row: see `check_place`.
        """
        self.check_place(draft)
        draft = self._with_mode(draft)
        return self._checked(draft, self.commits.commit(draft))

    def write_all(self, drafts: Sequence[Write]) -> list[Appended]:
        """Commit ``drafts`` together. Return their outcomes in order. Raise the errors of `write`."""
        for draft in drafts:
            self.check_place(draft)
        appended = self.commits.commit_all([self._with_mode(draft) for draft in drafts])
        return [self._checked(*each) for each in zip(drafts, appended, strict=True)]

    def _with_mode(self, draft: Write) -> Write:
        """Return ``draft`` with the mode of the file that it replaces, unless it has a mode.

        The mode on disk counts, because a person may have changed it with chmod(1). Without a file on disk,
        the current version's mode stays.
        """
        spec = ZONES[draft.zone]
        is_file = spec.keeps_mode and spec.folder and draft.content is not None
        if not is_file or EXECUTABLE in (draft.detail or {}):
            return draft
        executable = self.checkout.is_executable(draft.zone, draft.path)
        if executable is None and draft.expected != 0:
            executable = is_executable(self.journal.head(draft.zone, draft.path))
        return draft._replace(detail={**(draft.detail or {}), EXECUTABLE: True}) if executable else draft

    def _checked(self, draft: Write, appended: Appended) -> Appended:
        """Return ``appended``. Raise refusals of ``draft`` that callers do not handle as outcomes."""
        self.agent_versions.record(appended.row)
        if appended.row.error == ApprovalOutdated.code:
            raise ApprovalOutdated(tool=draft.tool, has_row=True)
        if appended.row.error == "path_blocked":
            raise PathBlocked(path=draft.path, by=appended.row.detail["by"])
        return appended

    def check_conditions(self, draft: Write) -> None:
        """Raise `ApprovalOutdated` if a condition of ``draft`` no longer holds. For callers that write a file
        before its row. The append checks the conditions again."""
        for each in draft.conditions:
            head = self.journal.head(each.zone, each.path)
            if (head.seq if head else 0) != each.seq:
                raise ApprovalOutdated(tool=draft.tool)

    def check_place(self, draft: Write) -> None:
        """Check that the disk has a place for the file of ``draft``.

        - `InvalidPath`: the disk ignores case, and another path has the same file.
        - `NotText`: a folder or special file is at the place of a private file. Only private files are read
          back from disk, so other zones are not checked.
        - OSError: the disk cannot be read.
        """
        zone, path = draft.zone, draft.path
        if self.checkout.folder.folds_case and draft.content is not None:
            is_shown = zone in EDITED or zone in DOCUMENTS
            if is_shown and self.checkout.other_spelling(zone, path) is not None:
                raise InvalidPath(given=path, rule="other_case")
        if zone != "private":
            return
        try:
            is_blocked = self.checkout.is_blocked(zone, path) and draft.content is not None
        except NotAFile:
            is_blocked = True
        # If a file of the journal is at the place, the append refuses the draft and names that file.
        if is_blocked and not self._is_blocked_by_ours(draft):
            raise NotText(rule="not_a_file")

    def _is_blocked_by_ours(self, draft: Write) -> bool:
        parts = draft.path.split("/")
        above = (self.journal.head(draft.zone, "/".join(parts[:depth])) for depth in range(1, len(parts)))
        below = self.journal.heads(draft.zone, draft.path + "/")
        return any(head is not None and not head.deleted for head in chain(above, below))

    def flush(self) -> None:
        """Wait until all pending work is done. Raise `JournalError`, `WorkspaceLocked`.

        Afterwards all notes are rows, and the files that are written after the commit exist (versions,
        histories, metadata, document checkpoints).
        """
        self.commits.flush()
        self.background.flush()
        self.checkout.derived.catch_up()

    def live_head(self, zone: Zone, path: str) -> Row:
        """Return the row of the current version of ``path`` in ``zone``. Raise `NotFound` if there is none or
        it was deleted."""
        head = self.journal.head(zone, path)
        if head is None or head.deleted:
            raise NotFound(path=path, zone=zone)
        return head

    def live_text(self, zone: Zone, path: str) -> tuple[Row, str]:
        """Return the `live_head` of ``path`` in ``zone`` and its content, in one query. Raise `NotFound`,
        `JournalError`."""
        (found,) = self.journal.heads_with_content([(zone, path)])
        if found is None or found[0].deleted:
            raise NotFound(path=path, zone=zone)
        return found[0], found[1] or ""

    def content(self, row: Row) -> str:
        """Return the content of ``row``; empty if it has none. Raise `JournalError`."""
        return self.journal.content(row.seq) or ""

    def read_bytes(self, row: Row) -> bytes | None:
        """Return the bytes of the file of ``row``, None if the bytes are not kept. Raise `JournalError`."""
        blob = blob_of(row)
        return self.content(row).encode() if blob is None else self.journal.blobs.find(blob.sha256)

    def note_reading(self, call: CallContext, zone: Zone, path: str, version: int | None) -> None:
        """Record that ``call`` read ``version`` of ``path`` in ``zone``. The row is written later, in a
        batch."""
        self.commits.note(call.note(zone, path, base=version, durable=False))
        self.agent_versions.record_read(call.actor, call.tool, zone, path, version)

    def check_path(self, zone: Zone, path: str, name: str | None = None) -> str:
        """Return ``path`` in ``zone``. Raise `InvalidPath` if its name is not valid. ``name``: the name that
        agents use for it, default the path.

        A path with versions stays valid, because earlier releases and other versions of Unicode allowed more
        names.
        """
        name = path if name is None else name
        try:
            validation.check_path(name)
        except InvalidPath:
            if validation.find_path_flaw(name) is not None or self.journal.head(zone, path) is None:
                raise
        return path

    def last_seen(
        self, call: CallContext, zone: Zone, path: str, read_tool: str, *, partial: Collection[str] = ()
    ) -> int:
        """Return the version of ``path`` in ``zone`` that the actor of ``call`` last read or wrote; 0 if
        there is none.

        - ``read_tool``: the tool that reads the whole file.
        - ``partial``: tools that write without reading the whole file.

        Raise `JournalError`, `WorkspaceLocked`.
        """
        key = (zone, path, call.actor, read_tool)
        seen = call.caller.seen if call.caller is not None else None
        if seen is None or seen.key != key:
            self.commits.flush(call.actor)
            (head,), (note,) = self.journal.heads_and_notes([(zone, path)], [key])
            seen = Seen(key, head, note)
        read = (seen.note.base or 0) if seen.note else 0
        head = seen.head
        if head is None or head.actor != call.actor or head.tool in partial:
            # If the current version is not the actor's own, a write based on an older own version would also
            # be refused.
            return read
        return max(read, head.version or 0)
