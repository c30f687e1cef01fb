"""`RegionNotices`: notifies agents, once, if lines that they changed are also changed in another working
tree."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence, Set
from hashlib import sha256
from threading import Lock
from typing import Final, NamedTuple, TypeAlias

from watchroom.features.trees.write_rules import Clash
from watchroom.texts import Catalogue

MAX_NOTICES: Final = 5
"""Maximum number of files that an agent is notified about after a call. The others follow later."""
_MAX_RANGES: Final = 5
_MAX_FILES: Final = 1000
"""Maximum number of files per agent, and of remembered notices per file."""
_MAX_TOLD: Final = 10_000
_Key: TypeAlias = tuple[str, str, str]
"""The agent's tree, the other tree, and the path."""


class ClashSide(NamedTuple):
    """A file in one of two trees.

    - ``tree``: the id of the tree.
    - ``name``: its branch, or its commit.
    - ``place``: the absolute path of the file.
    - ``agents``: those who changed the lines in question.
    """

    tree: str
    name: str
    place: str
    agents: tuple[str, ...]


class RegionNotice(NamedTuple):
    """Lines that an agent changed, and that are changed in another tree.

    - ``path``: the file's path in both trees.
    - ``lines``: the ranges in the agent's tree (from 0, ends excluded).
    - ``other``: the file in the other tree, with its authors.
    """

    path: str
    lines: tuple[tuple[int, int], ...]
    other: ClashSide

    def say(self, texts: Catalogue) -> str:
        """Return the text for the agent, in the language of ``texts``, the core's catalogue."""
        shown = [_say_range(*each) for each in self.lines[:_MAX_RANGES]]
        more = ["…"] if len(self.lines) > _MAX_RANGES else []
        separator = texts("tree.separator")
        return texts(
            "tree.clash",
            path=self.path,
            lines=separator.join([*shown, *more]),
            authors=separator.join(self.other.agents) or texts("tree.somebody"),
            tree=self.other.name,
            place=self.other.place,
        )


class _Held(NamedTuple):
    """``digests``: by region, the digest of the lines in the other tree."""

    notice: RegionNotice
    digests: tuple[str, ...]


class RegionNotices:
    """The conflicting lines of each agent, in memory. May be used from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[str, dict[_Key, _Held]] = {}
        self._told: OrderedDict[tuple[str, _Key], frozenset[str]] = OrderedDict()
        """The digests of lines that agents were notified of, at most `_MAX_TOLD`."""

    def replace(
        self, path: str, sides: tuple[ClashSide, ClashSide], clashes: Sequence[Clash], *, is_told: bool
    ) -> None:
        """Set the conflicting lines of the file at ``path`` in two trees. ``is_told``: their agents have been
        notified by an earlier process."""
        one, other = sides
        turned = [Clash(each.theirs, each.ours, each.their_text, each.our_text) for each in clashes]
        with self._lock:
            self._remove({(one.tree, other.tree, path), (other.tree, one.tree, path)}, forgets=not clashes)
            self._hold(path, one, other, clashes, is_told=is_told)
            self._hold(path, other, one, turned, is_told=is_told)

    def _hold(
        self, path: str, own: ClashSide, other: ClashSide, clashes: Sequence[Clash], *, is_told: bool
    ) -> None:
        digests = tuple(sha256(each.their_text.encode("utf-8", "replace")).hexdigest() for each in clashes)
        for agent in own.agents if clashes else ():
            others = tuple(each for each in other.agents if each != agent)
            held, key = self._held.setdefault(agent, {}), (own.tree, other.tree, path)
            if len(held) >= _MAX_FILES or (other.agents and not others):
                # The agent itself changed both.
                continue
            lines = tuple(each.ours for each in clashes)
            held[key] = _Held(RegionNotice(path, lines, other._replace(agents=others)), digests)
            if is_told:
                self._remember(agent, key, digests)

    def keep_only(self, trees: tuple[str, str], paths: Collection[str]) -> None:
        """Forget all files of two ``trees`` but ``paths``."""
        with self._lock:
            known = {key for held in self._held.values() for key in held}
            self._remove({key for key in known if {*key[:2]} == {*trees} and key[2] not in paths})

    def _remove(self, keys: Set[_Key], *, forgets: bool = True) -> None:
        for agent, held in self._held.items():
            for key in keys & held.keys():
                del held[key]
                if forgets:
                    self._told.pop((agent, key), None)

    def _remember(self, agent: str, key: _Key, digests: Sequence[str]) -> None:
        self._told[agent, key] = frozenset(digests)
        self._told.move_to_end((agent, key))
        if len(self._told) > _MAX_TOLD:
            self._told.popitem(last=False)

    def take(self, agent: str) -> list[RegionNotice]:
        """Return the notices that ``agent`` has not read yet, at most `MAX_NOTICES`. Each change of a region
        in the other tree is reported once."""
        found: list[RegionNotice] = []
        with self._lock:
            for key, (notice, digests) in self._held.get(agent, {}).items():
                told = self._told.get((agent, key), frozenset())
                at = [number for number, digest in enumerate(digests) if digest not in told]
                if at and len(found) < MAX_NOTICES:
                    found.append(notice._replace(lines=tuple(notice.lines[number] for number in at)))
                    self._remember(agent, key, digests)
        return found


def _say_range(start: int, end: int) -> str:
    """Return a range of lines for reading: from 1, with its last line."""
    return str(start + 1) if end - start < 2 else f"{start + 1}-{end}"
