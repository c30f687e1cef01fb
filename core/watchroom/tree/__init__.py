"""The journal's rows laid out as real files, for people, editors and shells."""

from watchroom.tree.layout import place
from watchroom.tree.tree import NewVersion, Overwritten, Tree

__all__ = ["NewVersion", "Overwritten", "Tree", "place"]
