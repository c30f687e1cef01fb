"""What can be searched or filtered."""

from __future__ import annotations

from typing import Protocol


class Searchable(Protocol):
    """A widget that shows only what matches, or where it is."""

    @property
    def sought(self) -> str:
        """What is looked for; empty: nothing."""

    def search_for(self, words: str) -> None:
        """Look for ``words`` instead."""

    def end_search(self) -> bool:
        """Look for nothing any more; False if nothing was looked for."""
