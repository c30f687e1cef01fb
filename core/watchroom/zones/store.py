"""What every zone stands on."""

from __future__ import annotations

from dataclasses import dataclass

from watchroom.committer import Committer
from watchroom.errors import NotFound, PathBlocked
from watchroom.journal import Journal
from watchroom.model import Appended, Note, Row, Write, Zone
from watchroom.registry import Registry
from watchroom.tree.tree import Tree


@dataclass(frozen=True, slots=True)
class Store:
    """The journal, the way into it, the files laid out from it, and who is registered."""

    journal: Journal
    committer: Committer
    tree: Tree
    registry: Registry

    def write(self, draft: Write) -> Appended:
        """Commit a write. Raises `PathBlocked`; a conflict is the caller's to tell."""
        appended = self.committer.commit(draft)
        if appended.row.error == "path_blocked":
            raise PathBlocked(path=draft.path, by=appended.row.detail["by"])
        return appended

    def live_head(self, zone: Zone, path: str) -> Row:
        """The current version of a path. Raises `NotFound` where there is none or it was deleted."""
        head = self.journal.head(zone, path)
        if head is None or head.deleted:
            raise NotFound(path=path, zone=zone)
        return head

    def content(self, row: Row) -> str:
        return self.journal.content(row.seq) or ""

    def note_reading(self, actor: str, tool: str, zone: Zone, path: str, version: int | None) -> None:
        self.committer.note(Note(actor, tool, zone, path, base=version, durable=False))
