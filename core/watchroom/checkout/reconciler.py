"""Edits made to the files behind the journal's back: noticed by content, kept as rows, never lost.

Where a zone says so, such an edit is the next version. Else it is a conflict for a person to settle: the
journal's version stays the current one until then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from watchroom import validation
from watchroom.call_context import with_call_context
from watchroom.checkout.edits import EDIT_TOOL, OVERWRITTEN_TOOL, edit_note
from watchroom.checkout.host import CheckoutHost
from watchroom.checkout.layout import CONFIG_PATH, ROOTS, is_edited, path_at, place
from watchroom.checkout.materializer import LAY_OUT_TOOL, Materializer, was_not_laid_out
from watchroom.disk import Parts
from watchroom.errors import ConfigInvalid, DiskFailed, EditedAgain, NoOutsideEdit, NotText, WatchroomError
from watchroom.files import NotAFile
from watchroom.journal import Journal
from watchroom.journal.edits import edits, is_settled
from watchroom.journal.topics import OUTSIDE_EDITS
from watchroom.model import (
    MAX_TEXT_BYTES,
    OUTSIDE,
    SHARED,
    SYSTEM,
    ZONES,
    Appended,
    Draft,
    Note,
    Outcome,
    Row,
    Write,
    Zone,
)
from watchroom.rules.conflicts import EDIT_UNDONE, NOT_A_FILE, checkout_of
from watchroom.rules.damage import find_damage
from watchroom.rules.row_files import find_edit_flaw, find_row_flaw
from watchroom.rules.task_versions import EXECUTABLE

_MOST_AT_ONCE: Final = 50
"""So many paths are compared before everyone else gets a turn."""
_log = logging.getLogger("watchroom")
_MOST_EDITS: Final = 1000
"""Of so many edits of a path, by hand and newest first, those of this checkout are looked for."""
_MAX_PROBLEM: Final = 300
"""Characters of what is wrong with a configuration."""
SCANNED: Final = tuple(zone for zone in ZONES if is_edited(zone) and zone != "config")
"""The zones all of whose files are compared."""


class EditRule(NamedTuple):
    """How a zone judges an edit. ``check_path`` raises `WatchroomError` where no path of the zone has that
    name, ``check_text`` where the text can be no version. ``may_remove``: whether a file that is gone is one.
    """

    check_path: Callable[[str], object]
    check_text: Callable[[str], object] = bool
    may_remove: bool = True


OTHER_HOST: Final = "other_host"
"""The error of an edit made where it does not count: on another machine than the workspace's host."""
_PATH_RULE: Final = EditRule(validation.check_path)
"""Of a zone that names no rule: any path, any text."""


class Reconciler:
    """Compares the files of ``checkout`` with ``journal``, and records what differs by the zones' ``rules``.

    ``append`` makes rows without waiting for their files; ``sign`` signs the drafts of people. Where ``host``
    says that another checkout counts, edits of what could be a version are recorded and put back. May be used
    from any thread.
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
        """Compare every file of every zone; returns the rows of the edits that were found.

        ``after_restart``: the machine went down meanwhile, so a file that is missing, empty or an older
        version was never synced; it is laid out again instead of taken for an edit.
        """
        found = self._record_all(list(self._suspects()), after_restart=after_restart)
        newest = self._journal.newest_of_topics(OUTSIDE_EDITS)
        return found + self._record_undone([(edit.zone, edit.path) for edit in newest if _is_open(edit)])

    def check_files(self, files: Iterable[Parts]) -> list[Row]:
        """Compare only ``files``, by their parts from the root; returns the rows of edits found."""
        places = sorted({found for parts in files if (found := path_at(parts))})
        differing = [each for each in places if self._differs_now(*each)]
        same = [each for each in places if each not in differing]
        return self._record_all(differing) + self._record_undone(same)

    def _record_all(self, suspects: list[tuple[Zone, str]], *, after_restart: bool = False) -> list[Row]:
        found: list[Row] = []
        for at in range(0, len(suspects), _MOST_AT_ONCE):
            with self._checkout.settled() as seq:
                for zone, path in suspects[at : at + _MOST_AT_ONCE]:
                    if after_restart and self._was_never_synced(zone, path):
                        self._checkout.rematerialize(zone, path)
                    else:
                        found.extend(self._record(zone, path, seq))
        return found

    def check(self, zone: Zone, path: str) -> Row | None:
        """Compare ``path`` in ``zone``; returns the row of an edit, if there is a new one. None for a path
        that breaks the rules of its zone: it has no file."""
        if find_edit_flaw(zone, path) is not None:
            return None
        if not self._differs_now(zone, path):
            return next(iter(self._record_undone([(zone, path)])), None)
        with self._checkout.settled() as seq:
            return next(iter(self._record(zone, path, seq)), None)

    def _record_undone(self, places: Iterable[tuple[Zone, str]]) -> list[Row]:
        """Record which external edits are not on disk any more, of the files at ``places``."""
        places = [each for each in places if self._undone_edit(*each) is not None]
        found: list[Row] = []
        for at in range(0, len(places), _MOST_AT_ONCE):
            with self._checkout.settled():
                for zone, path in places[at : at + _MOST_AT_ONCE]:
                    edit = self._undone_edit(zone, path)
                    if edit is not None:
                        found.append(self._append(self._undone_note(edit)))
        return found

    def _undone_edit(self, zone: Zone, path: str) -> Row | None:
        """The newest edit of this checkout, if it waits for a person, and the file is again as it was before.
        None if a newer version or a repair replaced the file: somebody has to decide about the text then."""
        if not is_edited(zone) or find_edit_flaw(zone, path) is not None:
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
        """Record that the external edit of ``path`` in ``zone`` is about to be replaced on disk, within
        `Materializer.settled`. Else it would seem to be undone, and nobody would be asked about it."""
        edit = next(self._own_edits(zone, path), None) if is_edited(zone) else None
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
        """The edit that stands on disk in place of the journal's version of ``path`` in ``zone``, recorded if
        it was not yet; None if the file is as the journal says. Raises `NotText`, `TooLarge` where what
        stands there is no text, `DiskFailed` where it cannot be read."""
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
        """The text of an edit, by the ``number`` of its row; empty where it took the file away."""
        return self._journal.content(number) or ""

    def revert(self, zone: Zone, path: str, number: int | None, note: Callable[[Row], Note]) -> Row:
        """Lay out the journal's version of ``path`` in ``zone`` in place of the newest edit, and commit
        the note that ``note`` makes of that edit. Where ``number`` is an edit on another machine, the note
        has that machine do so. Raises `EditedAgain` if there is one more edit there than ``number``, or than
        the journal knew: so nothing goes that was not seen. `NoOutsideEdit`, `NotText`, `TooLarge`, and what
        signing raises.
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
            # Before the file changes: a person without a key is refused.
            signed = self._sign(draft)
            if not self._host.made_edit(edit):
                return self._append(signed)
            data = self._read(zone, path)
            if data is not None and self._differs(edit, data):
                # What is no text cannot be kept in the journal, so it stays where it is.
                validation.decode_text(data)
            self._checkout.rematerialize(zone, path)
            return self._append(signed)

    def _edit_to_revert(self, zone: Zone, path: str, named: Row | None) -> Row:
        """The newest edit in the checkout of ``named``; without it, in this one, or else anywhere."""
        recorded = (row for row in edits(self._journal, zone, path) if row.outcome == "conflict")
        newest = None
        for edit in islice(recorded, _MOST_EDITS):
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
        """The newest edits of a path made in this checkout, newest first."""
        return filter(self._host.made_edit, islice(edits(self._journal, zone, path), _MOST_EDITS))

    def differing(self) -> list[tuple[Zone, str]]:
        """The paths whose file is not what the journal says, without recording anything."""
        suspects = list(self._suspects())
        if not suspects:
            return []
        # A version that was committed a moment ago may be on its way to its file: look again at those.
        with self._checkout.settled() as seq:
            return [(zone, path) for zone, path in suspects if self._differs_now(zone, path, seq)]

    def is_obstructed(self, zone: Zone, path: str) -> bool:
        """Whether a link, a folder or a pipe is in the place of the file of ``path`` in ``zone``, or above
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
            # A folder, such as that of an agent's handoffs, which is made with the first, is no edit.
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
        """What is gone comes first: where a folder took a file's place, the file has to go before."""
        # A row that breaks its zone's rules has no file that could differ.
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
        if zone == "board":
            # The one board that does not lie in the folder of boards.
            heads.pop(validation.GLOBAL_BOARD, None)
            if self._differs_now(zone, validation.GLOBAL_BOARD):
                strange.append(validation.GLOBAL_BOARD)
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
        """Whether a version of the file whose newest one is ``head`` has that ``checksum``."""
        return any(row.sha256 == checksum for row in self._journal.history(head.zone, head.path))

    def _append(self, draft: Draft) -> Row:
        """Make a row while nobody else lays out files: what it tells of is on disk."""
        return self._append_all([with_call_context(draft)])[0].row

    def _record(self, zone: Zone, path: str, seq: int) -> Iterator[Row]:
        """Look again, now that the files are as row ``seq`` left them, and journal what is found."""
        head = self._journal.head(zone, path, as_of=seq) if validation.is_unicode(path) else None
        if head is not None and find_damage(head) == "damage_version":
            # No version can follow it: `verify` names the row.
            return
        if head is not None and (was_not_laid_out(self._journal, head) or self._is_cleared(head)):
            yield from self._lay_again(head)
            return
        draft = self._draft(zone, path, head)
        if draft is not None and not self._is_known(draft):
            yield self._append(draft)
        if isinstance(draft, Note) and draft.error == OTHER_HOST:
            try:
                self._checkout.rematerialize(zone, path)
            except OSError as error:
                # Two rows written past the tools can name a file and a folder of one name.
                _log.warning("%s %s could not be written again: %s", zone, path, error)

    def _lay_again(self, head: Row) -> Iterator[Row]:
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
            self._checkout.note_laid_out(head)
            edit = self._undone_edit(head.zone, head.path)
            if edit is not None:
                yield self._append(self._undone_note(edit))
        except OSError as error:
            # It still cannot be replaced; its row says so already, and `verify` names it.
            _log.warning("%s %s could not be laid out again: %s", head.zone, head.path, error)

    def _is_cleared(self, head: Row) -> bool:
        """Whether what stood in the place of the file of ``head`` was removed."""
        edit = next(self._own_edits(head.zone, head.path), None)
        if edit is None or edit.error != NOT_A_FILE:
            return False
        try:
            return self._checkout.current(head.zone, head.path) is None
        except OSError:
            return False

    def _draft(self, zone: Zone, path: str, head: Row | None) -> Draft | None:
        """What becomes of the file as it is; None if that is no edit."""
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
                # Whoever wrote it learns which entry is meant.
                problem = validation.escape_unstorable(str(error.values.get("problem", "")), _MAX_PROBLEM)
        except NotAFile:
            # A link beside our files concerns nobody; one in the place of a file does.
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
        """The file, None if it is gone: also if a folder took its place."""
        try:
            return self._checkout.folder.read(place(zone, path), MAX_TEXT_BYTES)
        except NotAFile:
            if self._checkout.folder.is_folder(place(zone, path)):
                return None
            raise

    def _is_known(self, draft: Draft) -> bool:
        """Whether what was last noted about this path is this very edit."""
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
    """Whether ``edit`` waits for a person unless somebody settled it. A text that a newer version replaced on
    disk (`OVERWRITTEN_TOOL`) cannot be undone there."""
    is_need = edit.outcome == "conflict" or edit.error in (NOT_A_FILE, ConfigInvalid.code)
    return is_need and edit.tool == EDIT_TOOL
