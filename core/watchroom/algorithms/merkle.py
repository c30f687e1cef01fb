"""Merkle trees over a list that only grows (RFC 6962, section 2.1): roots, proofs and their checks. Pure.

Leaves are identified by position. The numbers of their rows do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()
"""The root of an empty tree."""


def hash_leaf(data: bytes) -> bytes:
    """Return the hash of a leaf with ``data``."""
    return sha256(b"\x00" + data).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """Return the hash of the parent of ``left`` and ``right``."""
    return sha256(b"\x01" + left + right).digest()


class Frontier(NamedTuple):
    """The state of a tree to which leaves can be added.

    - ``size``: the number of leaves.
    - ``roots``: the roots of the complete subtrees, largest first.
    """

    size: int = 0
    roots: tuple[bytes, ...] = ()


class GrowingTree:
    """A tree that stores only its `Frontier`: about 20 hashes for a million leaves."""

    def __init__(self, frontier: Frontier = Frontier()) -> None:  # noqa: B008  # it never changes
        self._size = frontier.size
        self._roots = [*frontier.roots]

    @property
    def size(self) -> int:
        """The number of leaves."""
        return self._size

    @property
    def frontier(self) -> Frontier:
        """The current state."""
        return Frontier(self._size, tuple(self._roots))

    def add(self, leaf: bytes) -> None:
        """Add a leaf, given by its hash."""
        roots, left = self._roots, self._size
        while left & 1:
            leaf = sha256(b"\x01" + roots.pop() + leaf).digest()
            left >>= 1
        roots.append(leaf)
        self._size += 1

    def root(self) -> bytes:
        """Return the root hash of the tree of all leaves."""
        if not self._roots:
            return EMPTY_ROOT
        root = self._roots[-1]
        for left in reversed(self._roots[:-1]):
            root = hash_node(left, root)
        return root


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of ``leaves``, given by their hashes."""
    tree = GrowingTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root()


def prove_inclusion(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the proof that the leaf ``index`` (from 0) is in the tree of ``leaves``, given by their hashes.

    Raise IndexError if there is no such leaf.
    """
    if not 0 <= index < len(leaves):
        raise IndexError(index)
    proof = []
    first, size = 0, len(leaves)
    while size > 1:
        split = _split(size)
        if index - first < split:
            proof.append(root_of(leaves[first + split : first + size]))
            size = split
        else:
            proof.append(root_of(leaves[first : first + split]))
            first, size = first + split, size - split
    return proof[::-1]


def is_included(proof: Sequence[bytes], leaf: bytes, index: int, size: int, root: bytes) -> bool:
    """Verify a result of `prove_inclusion` (RFC 9162, section 2.1.3.2).

    - ``leaf``: the hash of the leaf.
    - ``index``: the position of the leaf, from 0.
    - ``size``, ``root``: the number of leaves of the tree, and its root.
    """
    if not 0 <= index < size:
        return False
    node, last, found = index, size - 1, leaf
    for other in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            found = hash_node(other, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = hash_node(found, other)
        node, last = node >> 1, last >> 1
    return last == 0 and found == root


def prove_consistency(leaves: Sequence[bytes], old_size: int) -> list[bytes]:
    """Return the proof that the tree of ``leaves`` extends the tree of its first ``old_size`` leaves.

    Leaves are given by their hashes. Raise IndexError if there are fewer than ``old_size`` leaves.
    """
    if not 0 <= old_size <= len(leaves):
        raise IndexError(old_size)
    proof: list[bytes] = []
    first, size, old, is_whole = 0, len(leaves), old_size, True
    if old == 0:
        return proof
    while old != size:
        split = _split(size)
        if old <= split:
            proof.append(root_of(leaves[first + split : first + size]))
            size = split
        else:
            proof.append(root_of(leaves[first : first + split]))
            first, size, old, is_whole = first + split, size - split, old - split, False
    if not is_whole:
        proof.append(root_of(leaves[first : first + size]))
    return proof[::-1]


def is_consistent(proof: Sequence[bytes], old_size: int, old_root: bytes, size: int, root: bytes) -> bool:
    """Verify a result of `prove_consistency` (RFC 9162, section 2.1.4.2).

    - ``old_size``, ``old_root``: the number of leaves and the root of the older tree.
    - ``size``, ``root``: the number of leaves and the root of the newer tree.
    """
    if not 0 <= old_size <= size:
        return False
    if old_size == 0:
        return not proof and old_root == EMPTY_ROOT
    if old_size == size:
        return not proof and old_root == root
    # A proof omits the first hash if the older tree is complete, because that hash is the old root.
    path = [old_root, *proof] if old_size & (old_size - 1) == 0 else [*proof]
    if not path:
        return False
    node, last = old_size - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old_found = found = path[0]
    for other in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old_found, found = hash_node(other, old_found), hash_node(other, found)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            found = hash_node(found, other)
        node, last = node >> 1, last >> 1
    return last == 0 and old_found == old_root and found == root


def _split(size: int) -> int:
    """Return the largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)
