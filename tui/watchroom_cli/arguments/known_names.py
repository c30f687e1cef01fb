"""Check typed names against the journal."""

from __future__ import annotations

from collections.abc import Iterable

from watchroom.errors import UnknownAgent
from watchroom.features.config.registry import Registry
from watchroom.history.comparison import read_changed_paths
from watchroom.kernel.journal import Journal, RowFilter
from watchroom.texts import Catalogue
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage


def check_actor(journal: Journal, actor: str) -> None:
    """Raise `UnknownAgent` if ``actor`` is not registered and has never acted."""
    registry = Registry(journal)
    if actor in registry.ever_known():
        return
    if not journal.rows_before(journal.last_seq() + 1, limit=1, only=RowFilter(actor=actor, steps=True)):
        known = ", ".join(registry.current().agents)
        raise UnknownAgent(agent=sanitize(actor), known=known or "-")


def check_paths(journal: Journal, paths: Iterable[str], texts: Catalogue) -> None:
    """Raise `WrongUsage` for the first path that has never been a file, board or document."""
    for path in paths:
        if not read_changed_paths(journal, 0, journal.last_seq(), [path]):
            raise WrongUsage(texts("cli.unknown_path", path=sanitize(path)))
