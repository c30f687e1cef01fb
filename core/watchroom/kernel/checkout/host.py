"""The host of a workspace: one of its checkouts on several machines.

External edits of private files and of the configuration count on the host. Elsewhere they are recorded and
undone. A task's folder belongs to the machine on which the task was submitted.
"""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Callable
from typing import Final, NamedTuple

from watchroom.errors import JournalDamaged
from watchroom.kernel.journal import Journal
from watchroom.model import CHECKOUT, MACHINE, OUTSIDE, Appended, Draft, Json, Row, Write
from watchroom.platform.files import replace_durably

SET_HOST: Final = "set_host"
_PATH: Final = "host"
_ID_NAME: Final = "checkout-id"


class HostInfo(NamedTuple):
    """The checkout that is the host: its id, its machine's name and its folder there."""

    checkout: str
    machine: str
    folder: str


class CheckoutHost:
    """Knows which checkout is the host. May be used from any thread.

    - ``journal``: the rows.
    - ``root``: this checkout's folder.
    - ``control``: its control folder.
    """

    def __init__(self, journal: Journal, root: str, control: str) -> None:
        self._journal = journal
        self._root = root
        self._path = os.path.join(control, _ID_NAME)
        self._id = ""

    @property
    def id(self) -> str:
        """This checkout's id, created on first use; empty if the journal is not shared. Raise OSError."""
        if not self._id and self._journal.is_shared:
            self._id = self._read_id() or self._make_id()
        return self._id

    def _read_id(self) -> str:
        """The id in the file, empty without a file. A process that died can leave an empty file."""
        try:
            with open(self._path, encoding="ascii", errors="replace") as file:
                return file.read(64).strip()
        except FileNotFoundError:
            return ""

    def _make_id(self) -> str:
        """Write a new id atomically and durably. Return the id that is then in the file."""
        with self._journal.exclusive(f"checkout-id {self._path}"):
            if not self._read_id():
                replace_durably(self._path, uuid.uuid4().hex.encode())
        return self._read_id()

    @property
    def machine(self) -> str:
        """The name of this machine."""
        return platform.node()

    def find(self) -> HostInfo | None:
        """The host, None if none was set. Raise `JournalError`.

        If the host's id is damaged, no checkout is the host until a new host is set.
        """
        head = self._journal.head("workspace", _PATH)
        if head is None:
            return None
        try:
            checkout = self._journal.content(head.seq) or ""
        except JournalDamaged:
            checkout = ""
        return HostInfo(checkout, str(head.detail.get(MACHINE, "")), str(head.detail.get("folder", "")))

    def is_here(self) -> bool:
        """Whether this checkout is the host. Always true if the journal is not shared."""
        if not self._journal.is_shared:
            return True
        found = self.find()
        return found is not None and found.checkout == self.id

    def is_own(self, checkout: str) -> bool:
        """Whether ``checkout`` is the id of this checkout, or no id was recorded."""
        return checkout in ("", self.id)

    def edit_detail(self) -> dict[str, Json] | None:
        """The detail of the row of an external edit: the checkout and machine where it was made."""
        return {CHECKOUT: self.id, MACHINE: self.machine} if self.id else None

    def made_edit(self, row: Row) -> bool:
        """Whether ``row`` is an external edit in this checkout. Then its file already exists."""
        return row.actor == OUTSIDE and row.detail.get(CHECKOUT, self.id) == self.id

    def move_here(self, actor: str, append: Callable[[Draft], Appended], *, only_first: bool = False) -> Row:
        """Make this checkout the host.

        Args:
            actor: The actor of the change.
            append: Commits the row.
            only_first: Only if there is no host yet.

        Returns:
            The row. Its outcome is ``conflict`` if another checkout became the host first.

        Raises:
            JournalError: The row cannot be read or made.
        """
        head = self._journal.head("workspace", _PATH)
        expected = 0 if only_first or head is None else head.version or 0
        detail = {MACHINE: self.machine, "folder": self._root}
        draft = Write(actor, SET_HOST, "workspace", _PATH, self.id, expected=expected, detail=detail)
        return append(draft).row
