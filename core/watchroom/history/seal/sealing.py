"""The seals of one open workspace: writes, publishes and verifies them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING

from watchroom.errors import WatchroomError
from watchroom.features.people.service import LOST_PLACE, PeopleRegistry, find_id
from watchroom.history.seal.anchors import (
    Anchor,
    Anchors,
    EnrolmentPin,
    KeyPins,
    read_decision_anchors,
    state_folder,
)
from watchroom.history.seal.publisher import Publisher, SealTarget
from watchroom.history.seal.rows import read_seals
from watchroom.history.seal.signers import Signers, machine_signer
from watchroom.history.seal.verification import SealReport, verify_seals
from watchroom.history.seal.writer import SealWriter
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.seal_note import SignedSeal
from watchroom.model import PEOPLE_FORGOTTEN, SYSTEM, Appended, Draft, Note, Row
from watchroom.platform.signing import Signer

if TYPE_CHECKING:
    from watchroom.history.git import SealBranch

_log = logging.getLogger("watchroom")


class Sealing:
    """The seals of ``journal``. May be used from any thread.

    - ``commit``: commits the draft of a row.
    - ``place``: the folder of the workspace, or the address of its database.
    - ``people``: the people whose keys may sign.
    """

    def __init__(
        self, journal: Journal, commit: Callable[[Draft], Appended], place: str, people: PeopleRegistry
    ) -> None:
        self._journal = journal
        self._commit = commit
        self._people = people
        self._place = place
        self._state = state_folder()
        self._published = ""
        self._branch: SealBranch | None = None
        self._publishers: list[Publisher] = []
        self._is_following = False
        self._pins = KeyPins(self._state)
        self._signer: Callable[[], Signer | None] = lambda: None
        self._writer = SealWriter(journal, commit, self._anchors, self._find_signer)

    def sign_with(self, signer: Callable[[], Signer | None]) -> None:
        """Sign seals with the signer that ``signer`` returns, while its key is unlocked and enrolled.
        Otherwise sign with this machine's key."""
        self._signer = signer

    def publish_to(self, folder: str, branch: SealBranch | None = None) -> None:
        """Store the newest seal in ``folder`` as ``ID.txt`` (empty: no folder), and publish it to
        ``branch``."""
        self._published = folder
        self._branch = branch
        if branch is not None:
            self.publish_on(branch)

    def publish_on(self, target: SealTarget) -> None:
        """Publish the newest seal to ``target``, at most once a minute and at the end."""
        self._publishers.append(Publisher(self._journal, target, self._newest_anchor))

    def write_due(self, closing: Event, *, at_once: bool = False) -> Row | None:
        """Write a seal if one is due (see `SealWriter.write_due`), and publish it if that is due. Raise
        `JournalError`, `WorkspaceLocked`, OSError."""
        self._is_following = True
        row = self._writer.write_due(closing, at_once=at_once)
        if row is not None:
            self._pin_machines(find_id(self._journal))
        for each in self._publishers:
            each.publish_due()
        return row

    def write_last(self) -> None:
        """Write and publish the last seal before the workspace closes, if this process followed the journal.

        Errors are only logged, because the next process that opens the workspace writes the seal.
        """
        try:
            self._writer.write_last()
            for each in self._publishers if self._is_following else ():
                each.publish_due(at_once=True)
        except (WatchroomError, OSError):
            _log.exception("the last seal could not be written")

    def newest(self) -> SignedSeal | None:
        """Return the newest seal among the rows, unverified; None if there is none. Raise `JournalError`."""
        return next((each.signed for each in read_seals(self._journal, limit=1)), None)

    def newest_body(self) -> str:
        """Return the body of the newest seal among the rows, empty if there is none. Raise `JournalError`."""
        found = self.newest()
        return found.body if found is not None else ""

    def verify(
        self,
        given: Sequence[Anchor] = (),
        on_progress: Callable[[int, int], None] = lambda _, __: None,
        *,
        against: SealBranch | None = None,
    ) -> SealReport:
        """Compare all rows with all seals: seals in rows, in the state folder and in signed decisions, and
        published seals.

        - ``given``: additional seals to compare with.
        - ``on_progress``: called with the number of the last row read so far, and of the journal's last row.
        - ``against``: a branch with additional seals.

        If there is no sign of tampering, and no machine's key is pinned yet, pin the keys of the machines
        that sealed here. Raise `JournalError`, OSError; `WatchroomError` if ``against`` cannot be read.
        """
        workspace = find_id(self._journal)
        known = [*read_decision_anchors(self._journal, self._people.find_flaw)]
        missing = []
        for branch in dict.fromkeys(each for each in (self._branch, against) if each is not None):
            found = self._read_branch(branch, workspace, is_required=branch is against)
            known += found
            missing += [] if found else [branch.place]
        pinned = self._pins.read(workspace)
        machines = self._find_machines() if pinned is None else pinned
        report = verify_seals(
            self._journal,
            lambda workspace: [*self._anchors().read(workspace), *known, *given],
            on_progress,
            Signers(self._people, machines),
        )
        if pinned is None and machines and workspace and not report.findings:
            self._pins.add(workspace, machines)
        return report._replace(missing=tuple(missing))

    def trust_key(self, fingerprint: str) -> None:
        """Pin the machine key with this ``fingerprint``, so that its seals are no longer reported. Raise
        `JournalError`, OSError."""
        workspace = find_id(self._journal)
        if self._pins.read(workspace) is None:
            self._pins.add(workspace, self._find_machines())
        self._pins.add(workspace, {fingerprint})

    def find_replaced(self) -> SignedSeal | None:
        """Return the seal of another workspace at this place, None if there is none. Raise `JournalError`."""
        return self._anchors().find_replaced(find_id(self._journal))

    def forget_replaced(self) -> None:
        """Forget the seal and the enrolments of another workspace at this place. Raise `JournalError`,
        OSError."""
        self._anchors().forget_replaced(find_id(self._journal))
        EnrolmentPin(self._state, self._place).forget()
        if self._people.is_recorded_as_lost():
            self._commit(Note(SYSTEM, PEOPLE_FORGOTTEN, *LOST_PLACE))

    def has_lost_people(self) -> bool:
        """Whether the row with which people closed this workspace is missing or changed. Raise
        `JournalError`, OSError."""
        return EnrolmentPin(self._state, self._place).is_broken(self._journal)

    def _pin_machines(self, workspace: str) -> None:
        if self._pins.read(workspace) is None and (machines := self._find_machines()):
            self._pins.add(workspace, machines)

    def _find_machines(self) -> frozenset[str]:
        """Return the keys of this machine and of all machines that sealed; empty if signatures cannot be
        checked."""
        own = machine_signer(self._state)
        if own is None:
            return frozenset()
        signed = Signers(self._people).machines_of(read_seals(self._journal))
        return frozenset({*signed, own.key.fingerprint})

    def _read_branch(self, branch: SealBranch, workspace: str, *, is_required: bool) -> list[Anchor]:
        try:
            return [Anchor("git", branch.place, each) for each in branch.read(workspace)] if workspace else []
        except WatchroomError as error:
            if is_required:
                raise
            _log.warning("%s is skipped: %s", branch.place, error)
            return []

    def _newest_anchor(self) -> SignedSeal | None:
        workspace = find_id(self._journal)
        return self._anchors().newest_of(workspace) if workspace else None

    def _anchors(self) -> Anchors:
        return Anchors(self._state, self._place, self._published)

    def _find_signer(self) -> Signer | None:
        signer = self._signer()
        # A device that needs a touch cannot sign every minute.
        if signer is None or signer.key.is_touched:
            return machine_signer(self._state)
        is_enrolled = self._people.current().find_holder(signer.key.fingerprint)
        return signer if is_enrolled else machine_signer(self._state)
