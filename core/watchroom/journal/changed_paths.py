"""What became of paths between two rows: which have new versions, and whose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from watchroom.model import Zone


class ChangedPath(NamedTuple):
    """A path that got versions between two rows.

    ``first`` and ``last`` are the oldest and the newest of them, ``seq`` is the row of the newest; ``actors``
    are those who made them, whoever came first standing first, each with how many.
    """

    zone: Zone
    path: str
    first: int
    last: int
    seq: int
    actors: tuple[tuple[str, int], ...]

    @property
    def before(self) -> int:
        """The version that was current before all of them, 0 where there was none."""
        return self.first - 1

    @property
    def versions(self) -> int:
        """How many versions there are."""
        return sum(count for _, count in self.actors)


class VersionGroup(NamedTuple):
    """The versions of a path by one actor: the first and the last one, the row of the last, and how many they
    are."""

    zone: Zone
    path: str
    actor: str
    first: int
    last: int
    seq: int
    versions: int


def join_groups(groups: Iterable[VersionGroup]) -> list[ChangedPath]:
    """The paths that ``groups`` tell of, one for each actor of each path, in the order of zones and paths."""
    found: dict[tuple[Zone, str], list[VersionGroup]] = {}
    for group in groups:
        found.setdefault((group.zone, group.path), []).append(group)
    changed = []
    for (zone, path), parts in sorted(found.items(), key=lambda item: (item[0][0], item[0][1].encode())):
        parts.sort(key=lambda part: part.first)
        last = max(parts, key=lambda part: part.seq)
        actors = tuple((part.actor, part.versions) for part in parts)
        changed.append(ChangedPath(zone, path, parts[0].first, last.last, last.seq, actors))
    return changed
