"""The protocol of widgets that can be searched or filtered."""

from __future__ import annotations

from typing import Protocol


class Searchable(Protocol):
    """A widget that filters by words, or finds them."""

    @property
    def sought(self) -> str:
        """The search words, empty without a search."""

    def search_for(self, words: str) -> None:
        """Search for ``words``."""

    def end_search(self) -> bool:
        """End the search. Return False if there was none."""
