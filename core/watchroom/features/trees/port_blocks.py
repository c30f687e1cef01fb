"""Blocks of ports for working trees, so that servers in two trees do not use the same port.

All repositories of this user share one file with the blocks. A block belongs to a tree by the tree's id, and
is free when the tree is gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from watchroom.errors import NoFreePorts
from watchroom.features.trees.git import GitTree
from watchroom.features.trees.place import TREE_FILE
from watchroom.features.trees.rules import LAST_PORT
from watchroom.model import Json
from watchroom.platform import Platform
from watchroom.platform.process_lock import ProcessLock

_NAME: Final = "ports.json"
_LOCK: Final = "ports.lock"
_MAX_BYTES: Final = 1_000_000


class PortBlock(NamedTuple):
    """The ports ``first`` to ``first + size - 1``."""

    first: int
    size: int


class _Owned(NamedTuple):
    """The block of the tree with this id and git folder."""

    block: PortBlock
    tree: str
    git: str

    @property
    def is_used(self) -> bool:
        """Whether the tree exists."""
        try:
            with open(os.path.join(self.git, TREE_FILE), encoding="ascii", errors="replace") as file:
                return file.read(200).strip() == self.tree
        except OSError:
            return False


class PortBlocks:
    """The blocks of ports of this user's trees, in a file in ``folder``. Methods raise OSError,
    `WorkspaceLocked`."""

    def __init__(self, folder: str, platform: Platform) -> None:
        self._folder = folder
        self._platform = platform

    def find(self, tree: GitTree) -> PortBlock | None:
        """Return the block of ``tree``, None if it has none."""
        key = (tree.tree_id(), tree.git)
        return next((each.block for each in self._read() if (each.tree, each.git) == key), None)

    def take(self, tree: GitTree, size: int, lowest: int) -> PortBlock:
        """Return the block of ``tree``. If it has none, it gets ``size`` ports from ``lowest`` on. Raise
        `NoFreePorts`."""
        key = (tree.tree_id(), tree.git)
        with self._locked():
            owned = [each for each in self._read() if each.is_used]
            for each in owned:
                if (each.tree, each.git) == key:
                    return each.block
            first = lowest
            for block in sorted(each.block for each in owned):
                if block.first >= first + size:
                    break
                first = max(first, block.first + block.size)
            if first + size - 1 > LAST_PORT:
                raise NoFreePorts(count=size, first=lowest)
            made = PortBlock(first, size)
            self._write([*owned, _Owned(made, *key)])
            return made

    def clean(self) -> None:
        """Forget the blocks of trees that are gone."""
        if not os.path.exists(os.path.join(self._folder, _NAME)):
            return
        with self._locked():
            self._write([each for each in self._read() if each.is_used])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        lock = ProcessLock(os.path.join(self._folder, _LOCK), self._platform)
        try:
            lock.acquire()
            yield
        finally:
            lock.close()

    def _read(self) -> list[_Owned]:
        try:
            with open(os.path.join(self._folder, _NAME), encoding="utf-8") as file:
                found = json.loads(file.read(_MAX_BYTES))
        except (FileNotFoundError, ValueError, RecursionError):
            # Without the file, all ports are free.
            return []
        parsed = [_parse(each) for each in (found if isinstance(found, list) else [])]
        return [each for each in parsed if each is not None]

    def _write(self, owned: list[_Owned]) -> None:
        path = os.path.join(self._folder, _NAME)
        content = [{**each.block._asdict(), "tree": each.tree, "git": each.git} for each in owned]
        with open(os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(content, file)
        os.replace(f"{path}.new", path)


def _parse(fields: Json) -> _Owned | None:
    if not isinstance(fields, dict):
        return None
    first, size, tree, git = (fields.get(name) for name in ("first", "size", "tree", "git"))
    if isinstance(first, int) and isinstance(size, int) and isinstance(tree, str) and isinstance(git, str):
        return _Owned(PortBlock(first, size), tree, git)
    return None
