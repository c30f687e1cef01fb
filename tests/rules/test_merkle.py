"""Trees over rows: as RFC 6962 says, by the vectors that implementations of it share, and by its definition."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.algorithms.merkle import (
    EMPTY_ROOT,
    GrowingTree,
    hash_leaf,
    is_consistent,
    is_included,
    prove_consistency,
    prove_inclusion,
    root_of,
)

# The test vectors of Certificate Transparency's own implementation.
INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [hash_leaf(bytes.fromhex(each)) for each in INPUTS]
sizes = st.integers(1, 70)


def leaves(count: int) -> list[bytes]:
    return [hash_leaf(str(n).encode()) for n in range(count)]


def defined_root(hashes: list[bytes]) -> bytes:
    """By the definition in section 2.1."""
    if not hashes:
        return sha256(b"").digest()
    if len(hashes) == 1:
        return hashes[0]
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return sha256(b"\x01" + defined_root(hashes[:split]) + defined_root(hashes[split:])).digest()


@pytest.mark.parametrize("size", range(1, 9))
def test_the_roots_are_those_of_the_shared_vectors(size: int) -> None:
    assert root_of(LEAVES[:size]).hex() == ROOTS[size - 1]


def test_no_leaves_have_a_root_too() -> None:
    assert GrowingTree().root() == EMPTY_ROOT == defined_root([])


@given(size=sizes, again=sizes)
def test_a_tree_that_goes_on_from_its_frontier_has_the_defined_roots(size: int, again: int) -> None:
    tree, hashes = GrowingTree(), leaves(size + again)
    for leaf in hashes[:size]:
        tree.add(leaf)
    assert len(tree.frontier.roots) <= size.bit_length()
    tree = GrowingTree(tree.frontier)
    for leaf in hashes[size:]:
        tree.add(leaf)
    assert (tree.size, tree.root()) == (size + again, defined_root(hashes))


@given(size=sizes, data=st.data())
def test_what_is_included_is_shown_and_nothing_else(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    other = data.draw(st.integers(0, size - 1))
    hashes = leaves(size)
    root, proof = root_of(hashes), prove_inclusion(hashes, index)
    assert is_included(proof, hashes[index], index, size, root)
    if other != index:
        assert not is_included(proof, hashes[other], index, size, root)
        assert not is_included(proof, hashes[index], other, size, root)
    assert not is_included([*proof, root], hashes[index], index, size, root)
    assert not is_included(proof, hashes[index], size, size, root)
    with pytest.raises(IndexError):
        prove_inclusion(hashes, size)


@given(old=sizes, more=st.integers(0, 70), data=st.data())
def test_a_tree_is_shown_to_go_on_from_an_older_one_and_from_no_other(
    old: int, more: int, data: st.DataObject
) -> None:
    hashes = leaves(old + more)
    size, root, old_root = len(hashes), root_of(hashes), root_of(hashes[:old])
    proof = prove_consistency(hashes, old)
    assert is_consistent(proof, old, old_root, size, root)
    changed = [*hashes]
    changed[data.draw(st.integers(0, old - 1))] = hash_leaf(b"changed")
    assert not is_consistent(prove_consistency(changed, old), old, old_root, size, root_of(changed))
    if proof:
        assert not is_consistent(proof[:-1], old, old_root, size, root)
    assert not is_consistent([*proof, root], old, old_root, size, root)
    assert prove_consistency(hashes, 0) == []
    for other in (-1, size + 1):
        with pytest.raises(IndexError):
            prove_consistency(hashes, other)
