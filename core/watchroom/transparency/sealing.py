"""The checkpoints of one workspace, as it has them while it is open."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

from watchroom.errors import WatchroomError
from watchroom.journal import Journal
from watchroom.model import PEOPLE_FORGOTTEN, SYSTEM, Appended, Draft, Note, Row
from watchroom.rules.checkpoint_note import SignedCheckpoint
from watchroom.signing import Signer
from watchroom.transparency.anchors import Anchor, Anchors
from watchroom.transparency.checkpoint_rows import recorded_checkpoints
from watchroom.transparency.checkpoint_writer import CheckpointWriter
from watchroom.transparency.decision_anchors import read_decision_anchors
from watchroom.transparency.enrolment_pin import EnrolmentPin
from watchroom.transparency.key_pins import KeyPins
from watchroom.transparency.machine_key import machine_signer
from watchroom.transparency.publisher import CheckpointBranch, CheckpointTarget, Publisher
from watchroom.transparency.signers import Signers
from watchroom.transparency.state_folder import state_folder
from watchroom.transparency.verification import SealReport, verify_checkpoints
from watchroom.transparency.workspace_id import find_workspace_id
from watchroom.zones.people import LOST_PLACE, PeopleZone

_log = logging.getLogger("watchroom")


class Seal(NamedTuple):
    """The newest checkpoint in short: the last row that it covers, and how its root begins (hex)."""

    row: int
    root: str


class Sealing:
    """The checkpoints of ``journal``, of the workspace at ``place`` (its folder, or the address of its
    database) with these ``people``; rows of them are made with ``commit``. May be used from any thread."""

    def __init__(
        self, journal: Journal, commit: Callable[[Draft], Appended], place: str, people: PeopleZone
    ) -> None:
        self._journal = journal
        self._commit = commit
        self._people = people
        self._place = place
        self._state = state_folder()
        self._published = ""
        self._branch: CheckpointBranch | None = None
        self._publishers: list[Publisher] = []
        self._is_following = False
        self._pins = KeyPins(self._state)
        self._signer: Callable[[], Signer | None] = lambda: None
        self._writer = CheckpointWriter(journal, commit, self._anchors, self._find_signer)

    def sign_with(self, signer: Callable[[], Signer | None]) -> None:
        """Have checkpoints signed with what ``signer`` gives, as long as it is the key of somebody who is
        enrolled: a person's while it is unlocked. Else this machine's user signs."""
        self._signer = signer

    def publish_to(self, folder: str, branch: CheckpointBranch | None = None) -> None:
        """Keep the newest checkpoint in the folder ``folder`` from now on, too, as ``ID.txt`` (empty: in
        none), and from time to time on ``branch``."""
        self._published = folder
        self._branch = branch
        if branch is not None:
            self.publish_on(branch)

    def publish_on(self, target: CheckpointTarget) -> None:
        """Have ``target`` get the newest checkpoint from time to time, and at the end."""
        self._publishers.append(Publisher(self._journal, target, self._newest_kept))

    def write_due(self, closing: Event, *, at_once: bool = False) -> Row | None:
        """Write a checkpoint if one is due (see `CheckpointWriter.write_due`), and publish what is to be.
        Raises `JournalError`, `WorkspaceLocked`, OSError."""
        self._is_following = True
        row = self._writer.write_due(closing, at_once=at_once)
        if row is not None:
            self._pin_machines(find_workspace_id(self._journal))
        for each in self._publishers:
            each.publish_due()
        return row

    def write_last(self) -> None:
        """Write and publish the last checkpoint before the workspace is closed, where this process has
        followed the journal. Raises nothing: the next one that is open does it."""
        try:
            self._writer.write_last()
            for each in self._publishers if self._is_following else ():
                each.publish_due(at_once=True)
        except (WatchroomError, OSError):
            _log.exception("no checkpoint could be written")

    def newest_body(self) -> str:
        """The newest checkpoint among the rows as text, empty before the first. Raises `JournalError`."""
        found = recorded_checkpoints(self._journal, limit=1)
        return found[0].signed.body if found and found[0].signed is not None else ""

    def newest(self) -> Seal | None:
        """The newest checkpoint among the rows, not checked; None before the first. Raises `JournalError`."""
        for each in recorded_checkpoints(self._journal, limit=1):
            if each.signed is not None:
                return Seal(each.signed.checkpoint.seq, each.signed.checkpoint.short)
        return None

    def verify(
        self,
        given: Sequence[Anchor] = (),
        told: Callable[[int, int], None] = lambda _, __: None,
        *,
        against: CheckpointBranch | None = None,
    ) -> SealReport:
        """Compare all rows with all checkpoints: those among them, those that are kept for this user or were
        signed with decisions, those that were published, and those ``given`` and on the branch ``against``.
        ``told`` gets how far it is: up to which row, of which. Where nothing shows tampering, the keys of
        machines are pinned that sign here, if none are yet. Raises `JournalError`, OSError, and what reading
        ``against`` raises."""
        workspace = find_workspace_id(self._journal)
        known = [*read_decision_anchors(self._journal, self._people.find_flaw)]
        missing = []
        for branch in dict.fromkeys(each for each in (self._branch, against) if each is not None):
            found = self._read_branch(branch, workspace, is_asked=branch is against)
            known += found
            missing += [] if found else [branch.place]
        pinned = self._pins.read(workspace)
        machines = self._find_machines() if pinned is None else pinned
        report = verify_checkpoints(
            self._journal,
            lambda workspace: [*self._anchors().read(workspace), *known, *given],
            told,
            Signers(self._people, machines),
        )
        if pinned is None and machines and workspace and not report.findings:
            self._pins.add(workspace, machines)
        return report._replace(missing=tuple(missing))

    def trust_key(self, fingerprint: str) -> None:
        """Pin the key of a machine with that ``fingerprint``, too: what it signs is not told any more. Raises
        `JournalError`, OSError."""
        workspace = find_workspace_id(self._journal)
        if self._pins.read(workspace) is None:
            self._pins.add(workspace, self._find_machines())
        self._pins.add(workspace, {fingerprint})

    def find_replaced(self) -> SignedCheckpoint | None:
        """What another workspace left at this place that was sealed here, None where none was. Raises
        `JournalError`."""
        return self._anchors().find_replaced(find_workspace_id(self._journal))

    def forget_replaced(self) -> None:
        """Forget what another workspace left at this place, who was enrolled there too. Raise `JournalError`,
        OSError."""
        self._anchors().forget_replaced(find_workspace_id(self._journal))
        EnrolmentPin(self._state, self._place).forget()
        if self._people.is_recorded_as_lost():
            self._commit(Note(SYSTEM, PEOPLE_FORGOTTEN, *LOST_PLACE))

    def has_lost_people(self) -> bool:
        """Whether the row is gone by which people closed the workspace at this place. Raise `JournalError`,
        OSError."""
        return EnrolmentPin(self._state, self._place).is_broken(self._journal)

    def _pin_machines(self, workspace: str) -> None:
        if self._pins.read(workspace) is None and (machines := self._find_machines()):
            self._pins.add(workspace, machines)

    def _find_machines(self) -> frozenset[str]:
        """The keys of this machine, and of all that have signed; none where nothing can be checked here."""
        own = machine_signer(self._state)
        if own is None:
            return frozenset()
        signed = Signers(self._people).machines_of(recorded_checkpoints(self._journal))
        return frozenset({*signed, own.key.fingerprint})

    def _read_branch(self, branch: CheckpointBranch, workspace: str, *, is_asked: bool) -> list[Anchor]:
        try:
            return [Anchor("git", branch.place, each) for each in branch.read(workspace)] if workspace else []
        except WatchroomError as error:
            if is_asked:
                raise
            _log.warning("%s is passed over: %s", branch.place, error)
            return []

    def _newest_kept(self) -> SignedCheckpoint | None:
        workspace = find_workspace_id(self._journal)
        return self._anchors().newest_of(workspace) if workspace else None

    def _anchors(self) -> Anchors:
        return Anchors(self._state, self._place, self._published)

    def _find_signer(self) -> Signer | None:
        signer = self._signer()
        # Nobody touches a device each minute.
        if signer is None or signer.key.is_touched:
            return machine_signer(self._state)
        is_enrolled = self._people.current().find_holder(signer.key.fingerprint)
        return signer if is_enrolled else machine_signer(self._state)
