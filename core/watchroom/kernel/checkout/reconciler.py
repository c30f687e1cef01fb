"""External edits: finds them by content, and records them as rows, so that they are never lost.

In some zones an external edit is the next version. In the others, it is a conflict. The journal's version
stays the current version until a person settles the conflict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.errors import (
    ConfigInvalid,
    DiskFailed,
    EditedAgain,
    FileNotReplaced,
    NoOutsideEdit,
    NotText,
    WatchroomError,
)
from watchroom.kernel.checkout.edits import EDIT_TOOL, OVERWRITTEN_TOOL, edit_note
from watchroom.kernel.checkout.host import CheckoutHost
from watchroom.kernel.checkout.layout import EDITED, ROOTS, path_at, place
from watchroom.kernel.checkout.materializer import LAY_OUT_TOOL, Materializer, was_not_written
from watchroom.kernel.journal import Journal
from watchroom.kernel.journal.edits import edits, is_settled
from watchroom.kernel.journal.topics import OUTSIDE_EDITS
from watchroom.kernel.rules.conflicts import EDIT_UNDONE, NOT_A_FILE, checkout_of
from watchroom.kernel.rules.file_versions import EXECUTABLE
from watchroom.kernel.rules.row_files import CONFIG_PATH, MAX_VERSION, find_edit_flaw, find_row_flaw
from watchroom.kernel.zones import SHARED, ZONES
from watchroom.model import MAX_TEXT_BYTES, OUTSIDE, SYSTEM, Appended, Draft, Note, Outcome, Row, Write, Zone
from watchroom.platform.disk import Parts
from watchroom.platform.files import NotAFile

_MAX_BATCH: Final = 50
"""Maximum number of paths that are compared while the cursor is held."""
_log = logging.getLogger("watchroom")
_MAX_EDITS: Final = 1000
"""Maximum number of a path's newest external edits that are searched for edits of this checkout."""
_MAX_PROBLEM: Final = 300
"""Maximum characters of a recorded problem of a configuration."""
SCANNED: Final = tuple(zone for zone in ZONES if zone in EDITED and zone != "config")
"""The zones in which all files are compared."""


class EditRule(NamedTuple):
    """Decides which external edits of a zone can be versions.

    - ``check_path``: raises `WatchroomError` if the path is not valid in the zone.
    - ``check_text``: raises `WatchroomError` if the text cannot be a version.
    - ``may_remove``: whether a removed file is a version.
    """

    check_path: Callable[[str], object]
    check_text: Callable[[str], object] = bool
    may_remove: bool = True


OTHER_HOST: Final = "other_host"
"""The error of an external edit that does not count, because it was not made on the workspace's host."""
_PATH_RULE: Final = EditRule(validation.check_path)
"""The rule of a zone without its own rule: any path and any text."""


class Reconciler:
    """Compares files with the journal and records external edits. May be used from any thread.

    Args:
        journal: The journal with the rows.
        checkout: The files.
        append: Appends rows without waiting for their files.
        rules: The rule of each zone.
        host: Knows which checkout is the host. In other checkouts, edits that could be versions are recorded
            and undone.
        sign: Signs the drafts of people.
    """

    def __init__(
        self,
        journal: Journal,
        checkout: Materializer,
        append: Callable[[Sequence[Draft]], list[Appended]],
        rules: Mapping[Zone, EditRule],
        host: CheckoutHost,
        sign: Callable[[Draft], Draft],
    ) -> None:
        self._journal = journal
        self._checkout = checkout
        self._append_all = append
        self._rules = rules
        self._host = host
        self._sign = sign

    def scan(self, *, after_restart: bool = False) -> list[Row]:
        """Compare every file of every zone. Return the rows of the edits that were found.

        ``after_restart``: the machine was restarted since the files were written. Then a missing or empty
        file, or an older version, counts as unsynced: it is written again, and is not an edit.
        """
        found = self._record_all(list(self._suspects()), after_restart=after_restart)
        newest = self._journal.newest_of_topics(OUTSIDE_EDITS)
        return found + self._record_undone([(edit.zone, edit.path) for edit in newest if _is_open(edit)])

    def check_files(self, files: Iterable[Parts]) -> list[Row]:
        """Compare only ``files``, by their parts from the root. Return the rows of the edits that were
        found."""
        places = sorted({found for parts in files if (found := path_at(parts))})
        differing = [each for each in places if self._differs_now(*each)]
        same = [each for each in places if each not in differing]
        return self._record_all(differing) + self._record_undone(same)

    def _record_all(self, suspects: list[tuple[Zone, str]], *, after_restart: bool = False) -> list[Row]:
        found: list[Row] = []
        for at in range(0, len(suspects), _MAX_BATCH):
            with self._checkout.settled() as seq:
                for zone, path in suspects[at : at + _MAX_BATCH]:
                    if after_restart and self._was_never_synced(zone, path):
                        self._checkout.rematerialize(zone, path)
                    else:
                        found.extend(self._record(zone, path, seq))
        return found

    def check(self, zone: Zone, path: str) -> Row | None:
        """Compare ``path`` in ``zone``. Return the row of a new edit, if any. A path that breaks the rules of
        its zone has no file to compare."""
        if find_edit_flaw(zone, path) is not None:
            return None
        if not self._differs_now(zone, path):
            return next(iter(self._record_undone([(zone, path)])), None)
        with self._checkout.settled() as seq:
            return next(iter(self._record(zone, path, seq)), None)

    def _record_undone(self, places: Iterable[tuple[Zone, str]]) -> list[Row]:
        """Record the external edits of the files at ``places`` that are no longer on disk."""
        places = [each for each in places if self._undone_edit(*each) is not None]
        found: list[Row] = []
        for at in range(0, len(places), _MAX_BATCH):
            with self._checkout.settled():
                for zone, path in places[at : at + _MAX_BATCH]:
                    edit = self._undone_edit(zone, path)
                    if edit is not None:
                        found.append(self._append(self._undone_note(edit)))
        return found

    def _undone_edit(self, zone: Zone, path: str) -> Row | None:
        """Return the newest edit of this checkout if it waits for a person, and the file is as it was before
        the edit. None if a newer version or a repair replaced the file, because then a person must decide."""
        if zone not in EDITED or find_edit_flaw(zone, path) is not None:
            return None
        edit = next(self._own_edits(zone, path), None)
        if edit is None or not _is_open(edit) or self._differs_now(zone, path):
            return None
        if edit.error == NOT_A_FILE:
            return edit
        head = self._journal.head(zone, path)
        if (edit.base or 0) != ((head.version or 0) if head else 0):
            return None
        put_back = self._journal.last_note(zone, path, SYSTEM, LAY_OUT_TOOL)
        if put_back is not None and put_back.seq > edit.seq:
            return None
        is_settled_already = zone in SHARED and is_settled(self._journal, edit, self._checkout.counts)
        return None if is_settled_already else edit

    def keep_edit(self, zone: Zone, path: str) -> None:
        """Record, within `Materializer.settled`, that the external edit of ``path`` in ``zone`` will be
        replaced on disk.

        Otherwise the edit would count as undone, and no person would be asked.
        """
        edit = next(self._own_edits(zone, path), None) if zone in EDITED else None
        if (
            edit is not None
            and edit.outcome == "conflict"
            and _is_open(edit)
            and self._differs_now(zone, path)
        ):
            self._append(Note(SYSTEM, LAY_OUT_TOOL, zone, path, detail={"replaced": edit.seq}))

    def _undone_note(self, edit: Row) -> Note:
        return Note(
            OUTSIDE,
            EDIT_TOOL,
            edit.zone,
            edit.path,
            "failed",
            EDIT_UNDONE,
            base=edit.base,
            detail=self._host.edit_detail(),
        )

    def pending(self, zone: Zone, path: str) -> Row | None:
        """Return the edit that is on disk instead of the journal's version of ``path`` in ``zone``. It is
        recorded if necessary. None if the file equals the journal's version.

        Raise `NotText` or `TooLarge` if the file is not a text, `DiskFailed` if it cannot be read.
        """
        if find_edit_flaw(zone, path) is not None:
            return None
        try:
            while self._differs_now(zone, path):
                self.check(zone, path)
                if not self._differs_now(zone, path):
                    return None
                edit = next(self._own_edits(zone, path), None)
                if edit is None or edit.error == "outside_edit":
                    return edit
                validation.decode_text(self._read(zone, path) or b"")
        except NotAFile as error:
            raise NotText(rule="not_a_file") from error
        except OSError as error:
            raise DiskFailed(reason=validation.escape_unstorable(error.strerror or str(error))) from error
        return None

    def text(self, number: int) -> str:
        """The text of an edit, by the ``number`` of its row; empty if the edit removed the file."""
        return self._journal.content(number) or ""

    def revert(self, zone: Zone, path: str, number: int | None, note: Callable[[Row], Note]) -> Row:
        """Replace the newest external edit with the journal's version, and commit a note about it.

        Args:
            zone: The zone of the file.
            path: Its path.
            number: The row of the edit, default: the newest edit. For an edit on another machine, the note
                causes that machine to replace the file.
            note: Returns the note for the edit.

        Raises:
            EditedAgain: The file has a newer or an unrecorded edit. Nothing is replaced unseen.
            NoOutsideEdit: There is no edit.
            NotText, TooLarge: The journal cannot keep the file's content.
            FileNotReplaced: The note is committed, but the file cannot be written.
        """
        named = None if number is None else self._journal.row(number)
        if find_edit_flaw(zone, path) is not None:
            raise NoOutsideEdit(path=path)
        with self._checkout.settled() as seq:
            if named is None or self._host.made_edit(named):
                new = list(self._record(zone, path, seq))
                if new:
                    raise EditedAgain(path=path, conflict=new[-1].seq)
            edit = self._edit_to_revert(zone, path, named)
            draft = note(edit)
            draft = draft._replace(detail={**(draft.detail or {}), **(self._host.edit_detail() or {})})
            signed = self._sign(draft)
            if not self._host.made_edit(edit):
                return self._append(signed)
            data = self._read(zone, path)
            if data is not None and self._differs(edit, data):
                # Binary files cannot be kept in the journal, so they are not replaced.
                validation.decode_text(data)
            # The note comes first, because it can be refused. If this process is then killed, the next scan
            # records the edit again.
            row = self._append(signed)
            try:
                self._checkout.rematerialize(zone, path)
            except OSError as error:
                raise FileNotReplaced(path=path, reason=error.strerror or str(error)) from error
            return row

    def _edit_to_revert(self, zone: Zone, path: str, named: Row | None) -> Row:
        """Return the newest edit in the checkout of ``named``. Without ``named``, return the newest edit in
        this checkout, else in any checkout."""
        recorded = (row for row in edits(self._journal, zone, path) if row.outcome == "conflict")
        newest = None
        for edit in islice(recorded, _MAX_EDITS):
            newest = newest or edit
            if self._host.made_edit(edit) if named is None else checkout_of(edit) == checkout_of(named):
                newest = edit
                break
        if newest is None:
            raise NoOutsideEdit(path=path)
        if named is not None and named.seq != newest.seq:
            raise EditedAgain(path=path, conflict=newest.seq)
        return newest

    def _own_edits(self, zone: Zone, path: str) -> Iterator[Row]:
        """Yield the edits of a path made in this checkout, newest first."""
        return filter(self._host.made_edit, islice(edits(self._journal, zone, path), _MAX_EDITS))

    def differing(self) -> list[tuple[Zone, str]]:
        """Return the paths whose files differ from the journal. Nothing is recorded."""
        suspects = list(self._suspects())
        if not suspects:
            return []
        # The file of a just committed version may not be written yet, so compare again.
        with self._checkout.settled() as seq:
            return [(zone, path) for zone, path in suspects if self._differs_now(zone, path, seq)]

    def is_obstructed(self, zone: Zone, path: str) -> bool:
        """Whether a link, a folder or a pipe is at the place of the file of ``path`` in ``zone``, or above
        it."""
        if not validation.is_unicode(path):
            return False
        try:
            return self._checkout.is_blocked(zone, path)
        except NotAFile:
            return True
        except OSError:
            return False

    def _differs_now(self, zone: Zone, path: str, seq: int | None = None) -> bool:
        if not validation.is_unicode(path):
            return True
        try:
            data = self._checkout.current(zone, path)
        except NotAFile:
            if not self._checkout.folder.is_folder(place(zone, path)):
                return True
            # A folder is not an edit. For example, the folder for an agent's handoffs is created with the
            # first handoff.
            data = None
        except OSError:
            return True
        return self._differs(self._journal.head(zone, path, as_of=seq), data)

    def _suspects(self) -> Iterator[tuple[Zone, str]]:
        for zone in SCANNED:
            yield from self._suspects_in(zone)
        if self._differs_now("config", CONFIG_PATH):
            yield "config", CONFIG_PATH

    def _suspects_in(self, zone: Zone) -> Iterator[tuple[Zone, str]]:
        """Yield the paths in ``zone`` that may differ. Removed files come first: if a folder took the place
        of a file, the file must be removed before."""
        # A row that breaks its zone's rules has no file to compare.
        heads = {head.path: head for head in self._journal.heads(zone) if find_row_flaw(head) is None}
        strange = []
        for entry in self._checkout.folder.walk(ROOTS[zone]):
            found = path_at(entry.parts)
            if found is None:
                continue
            path = found[1]
            head = heads.pop(path, None)
            if entry.kind != "file" or head is None or head.sha256 != self._checksum(entry.parts):
                strange.append(path)
        at_root = ZONES[zone].root_path
        if at_root is not None:
            # Its file is not in the folder of the zone.
            heads.pop(at_root, None)
            if self._differs_now(zone, at_root):
                strange.append(at_root)
        for path, head in heads.items():
            if not head.deleted:
                yield zone, path
        for path in strange:
            yield zone, path

    def _checksum(self, parts: Parts) -> str | None:
        try:
            data = self._checkout.folder.read(parts)
        except OSError:
            return None
        return None if data is None else validation.sha256(data)

    @staticmethod
    def _differs(head: Row | None, data: bytes | None) -> bool:
        expected = None if head is None else head.sha256
        return expected != (None if data is None else validation.sha256(data))

    def _was_never_synced(self, zone: Zone, path: str) -> bool:
        head = self._journal.head(zone, path) if validation.is_unicode(path) else None
        if head is None or head.deleted:
            return False
        try:
            data = self._checkout.current(zone, path)
        except OSError:
            return False
        if not data or not data.strip(b"\0"):
            return True
        return self._is_version(head, validation.sha256(data))

    def _is_version(self, head: Row, checksum: str) -> bool:
        """Whether a version of the file up to ``head`` has this ``checksum``."""
        return any(row.sha256 == checksum for row in self._journal.history(head.zone, head.path))

    def _append(self, draft: Draft) -> Row:
        """Append a row about the disk while nobody else writes files."""
        return self._append_all([draft])[0].row

    def _record(self, zone: Zone, path: str, seq: int) -> Iterator[Row]:
        """Compare again, after the files are written up to row ``seq``, and record an edit."""
        head = self._journal.head(zone, path, as_of=seq) if validation.is_unicode(path) else None
        if head is not None and not 0 < (head.version or 0) <= MAX_VERSION:
            # No version can follow this row: `verify` reports it.
            return
        if head is not None and (was_not_written(self._journal, head) or self._is_cleared(head)):
            yield from self._write_again(head)
            return
        draft = self._draft(zone, path, head)
        if draft is not None and not self._is_known(draft):
            yield self._append(draft)
        if isinstance(draft, Note) and draft.error == OTHER_HOST:
            try:
                self._checkout.rematerialize(zone, path)
            except OSError as error:
                # Two rows that were not written by the tools can have a file and a folder of the same name.
                _log.warning("%s %s could not be written again: %s", zone, path, error)

    def _write_again(self, head: Row) -> Iterator[Row]:
        try:
            data = self._checkout.current(head.zone, head.path)
            checksum = None if data is None else validation.sha256(data)
            ours = checksum is None or self._is_version(head, checksum)
            if data is not None and not ours:
                base, detail = head.version or 0, self._host.edit_detail()
                yield self._append(
                    edit_note(head.zone, head.path, data, tool=OVERWRITTEN_TOOL, base=base, detail=detail)
                )
            self._checkout.rematerialize(head.zone, head.path)
            self._checkout.record_written(head)
            edit = self._undone_edit(head.zone, head.path)
            if edit is not None:
                yield self._append(self._undone_note(edit))
        except OSError as error:
            # The file still cannot be replaced. A row already records that, and `verify` reports it.
            _log.warning("%s %s could not be written again: %s", head.zone, head.path, error)

    def _is_cleared(self, head: Row) -> bool:
        """Whether the obstacle at the place of the file of ``head`` was removed."""
        edit = next(self._own_edits(head.zone, head.path), None)
        if edit is None or edit.error != NOT_A_FILE:
            return False
        try:
            return self._checkout.current(head.zone, head.path) is None
        except OSError:
            return False

    def _draft(self, zone: Zone, path: str, head: Row | None) -> Draft | None:
        """Return the draft for the file on disk, None if it was not edited."""
        rule, data, refusal, problem = self._rules.get(zone, _PATH_RULE), None, "", ""
        content: str | None = None
        try:
            rule.check_path(path)
            data = self._read(zone, path)
            if not self._differs(head, data):
                return None
            content = None if data is None else validation.decode_text(data)
            if content is not None:
                rule.check_text(content)
        except WatchroomError as error:
            refusal = error.code
            if isinstance(error, ConfigInvalid):
                # The author must know which entry is wrong.
                problem = validation.escape_unstorable(str(error.values.get("problem", "")), _MAX_PROBLEM)
        except NotAFile:
            # Only a link at the place of one of our files is reported as a link.
            refusal = NotText.code if head is None or head.deleted else NOT_A_FILE
        except OSError:
            refusal = NotText.code
        base, detail = (head.version or 0) if head else 0, self._host.edit_detail()
        is_version = ZONES[zone].on_edit == "version" and (content is not None or rule.may_remove)
        if ZONES[zone].on_edit == "version" and not self._host.is_here():
            return edit_note(zone, path, data, outcome="denied", error=OTHER_HOST, base=base, detail=detail)
        if is_version and not refusal:
            if content is not None and self._checkout.is_executable(zone, path):
                detail = {**(detail or {}), EXECUTABLE: True}
            return Write(OUTSIDE, EDIT_TOOL, zone, path, content, expected=base, detail=detail)
        outcome: Outcome = "failed" if refusal else "conflict"
        return edit_note(
            zone, path, data, outcome=outcome, error=refusal, base=base, message=problem, detail=detail
        )

    def _read(self, zone: Zone, path: str) -> bytes | None:
        """The bytes of the file, None if it was removed or a folder took its place."""
        try:
            return self._checkout.folder.read(place(zone, path), MAX_TEXT_BYTES)
        except NotAFile:
            if self._checkout.folder.is_folder(place(zone, path)):
                return None
            raise

    def _is_known(self, draft: Draft) -> bool:
        """Whether the newest recorded edit of the path equals this edit."""
        if isinstance(draft, Write):
            checksum = None if draft.content is None else validation.sha256(draft.content.encode())
            base, error = draft.expected, "path_blocked"
        else:
            checksum, base, error = draft.sha256, draft.base or 0, draft.error
        known = next(self._own_edits(draft.zone, draft.path), None)
        if known is not None and known.error == error == NOT_A_FILE:
            return True
        if known is None or (known.sha256, known.base, known.error) != (checksum, base, error):
            return False
        return known.seq > self._checkout.last_revert(draft.zone, draft.path)


def _is_open(edit: Row) -> bool:
    """Whether ``edit``, unless it was settled, waits for a person. A text that a newer version replaced on
    disk (`OVERWRITTEN_TOOL`) cannot be undone there."""
    is_need = edit.outcome == "conflict" or edit.error in (NOT_A_FILE, ConfigInvalid.code)
    return is_need and edit.tool == EDIT_TOOL
