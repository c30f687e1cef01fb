"""Which checkout of a workspace counts: of several on different machines one is its host.

Edits made by hand in private files and in the configuration count there; elsewhere they are recorded and put
back. A task's folder belongs to the machine on which it was submitted.
"""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.files import replace_durably
from watchroom.journal import Journal
from watchroom.model import CHECKOUT, MACHINE, OUTSIDE, Appended, Draft, Json, Row, Write

SET_HOST: Final = "set_host"
_PATH: Final = "host"
_ID_NAME: Final = "checkout-id"


class HostInfo(NamedTuple):
    """The checkout that is the host: its id, its machine's name and its folder there."""

    checkout: str
    machine: str
    folder: str


class CheckoutHost:
    """Whether the checkout at ``root``, whose control folder is ``control``, is the host by ``journal``. May
    be used from any thread."""

    def __init__(self, journal: Journal, root: str, control: str) -> None:
        self._journal = journal
        self._root = root
        self._path = os.path.join(control, _ID_NAME)
        self._id = ""

    @property
    def id(self) -> str:
        """This checkout's id, made on first use; empty where one machine has the journal. Raises OSError."""
        if not self._id and self._journal.is_shared:
            self._id = self._read_id() or self._make_id()
        return self._id

    def _read_id(self) -> str:
        """The id in the file, empty if there is none. A process that died may have left an empty file."""
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                return file.read(64).strip()
        except FileNotFoundError:
            return ""

    def _make_id(self) -> str:
        """Write a new id, whole and durably, and return the id that is in the file then."""
        with self._journal.exclusive(f"checkout-id {self._path}"):
            if not self._read_id():
                replace_durably(self._path, uuid.uuid4().hex.encode())
        return self._read_id()

    @property
    def machine(self) -> str:
        """The name of this machine."""
        return platform.node()

    def find(self) -> HostInfo | None:
        """The host, None where none was set. Where its id is damaged, no checkout is the host until one
        is made it. Raises `JournalError`."""
        head = self._journal.head("workspace", _PATH)
        if head is None:
            return None
        try:
            checkout = self._journal.content(head.seq) or ""
        except JournalDamaged:
            checkout = ""
        return HostInfo(checkout, str(head.detail.get(MACHINE, "")), str(head.detail.get("folder", "")))

    def is_here(self) -> bool:
        """Whether this checkout is the host: always, where all that use the journal are on one machine."""
        if not self._journal.is_shared:
            return True
        found = self.find()
        return found is not None and found.checkout == self.id

    def is_own(self, checkout: str) -> bool:
        """Whether ``checkout`` is this one's id; also where none was noted."""
        return checkout in ("", self.id)

    def edit_detail(self) -> dict[str, Json] | None:
        """What the row of an edit made by hand in this checkout remembers: where it was made."""
        return {CHECKOUT: self.id, MACHINE: self.machine} if self.id else None

    def made_edit(self, row: Row) -> bool:
        """Whether ``row`` tells of an edit by hand in this checkout, so that its file is there already."""
        return row.actor == OUTSIDE and row.detail.get(CHECKOUT, self.id) == self.id

    def move_here(self, actor: str, append: Callable[[Draft], Appended], *, only_first: bool = False) -> Row:
        """Have this checkout be the host from now on, by ``actor``; with ``only_first``, where there is none
        yet. Returns the row, one of outcome ``conflict`` where another became it meanwhile. Raises
        `JournalError`."""
        head = self._journal.head("workspace", _PATH)
        expected = 0 if only_first or head is None else head.version or 0
        detail = {MACHINE: self.machine, "folder": self._root}
        draft = Write(actor, SET_HOST, "workspace", _PATH, self.id, expected=expected, detail=detail)
        return append(draft).row
