"""Compares a journal with all of its seals: seals in its rows, and anchors in other places."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.algorithms.merkle import EMPTY_ROOT, GrowingTree
from watchroom.errors import InvalidSignature
from watchroom.features.people.service import find_id
from watchroom.history.seal.anchors import Anchor
from watchroom.history.seal.rows import read_seals
from watchroom.history.seal.signers import Signers, read_fingerprint
from watchroom.kernel.journal import Journal
from watchroom.kernel.rules.row_leaf import has_leaf, hash_row
from watchroom.kernel.rules.seal_note import Seal, SignedSeal
from watchroom.model import is_of_journal

FindingKind: TypeAlias = Literal[
    "changed", "truncated", "forked", "replaced", "signature", "signer", "machine"
]
"""A sign of tampering.

- ``changed``: rows between two seals differ from the sealed rows.
- ``truncated``: the journal has fewer rows than the seal.
- ``forked``: after some row, the journal differs from the sealed journal.
- ``replaced``: another workspace was sealed at this place.
- ``signature``: a signature is wrong.
- ``signer``: the person did not hold the key when the seal was written.
- ``machine``: the key of the signer is unknown.
"""
_BATCH: Final = 5_000


class Finding(NamedTuple):
    """One sign of tampering.

    - ``after``: the last row that still equals the sealed row, 0 if there is none.
    - ``until``: the row of the first seal that does not match. For an anchor, the last row that it covers.
    - ``rows``, ``sealed``: the number of existing leaves, and of sealed leaves.
    - ``anchor``: the anchor that reveals it, None if the journal's own rows do.
    - ``key``, ``person``: the fingerprint of a signer without permission, and the person who held the key.
    """

    kind: FindingKind
    after: int = 0
    until: int = 0
    rows: int = 0
    sealed: int = 0
    anchor: Anchor | None = None
    key: str = ""
    person: str = ""


class SealReport(NamedTuple):
    """The result of comparing a journal with its seals.

    - ``workspace``: the id of the workspace.
    - ``rows``: the number of leaves.
    - ``newest``: the matching seal that covers the most rows.
    - ``signer``: the fingerprint of its signer; empty if it is unsigned or cannot be checked.
    - ``person``: the person who held this key when the seal was written.
    - ``is_machine``: whether the signer is a trusted machine.
    - ``since``: the number of rows after the newest seal.
    - ``anchors``: the matching anchors, only the newest of each place.
    - ``findings``: signs of tampering.
    - ``missing``: places without the expected seal.
    """

    workspace: str = ""
    rows: int = 0
    newest: SignedSeal | None = None
    signer: str = ""
    person: str = ""
    is_machine: bool = False
    since: int = 0
    anchors: tuple[Anchor, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()


class _Own(NamedTuple):
    seq: int
    signed: SignedSeal


class _Signer(NamedTuple):
    key: str = ""
    person: str = ""
    is_machine: bool = False


def verify_seals(
    journal: Journal,
    anchors: Callable[[str], Sequence[Anchor]] = lambda _: (),
    on_progress: Callable[[int, int], None] = lambda _, __: None,
    signers: Signers | None = None,
) -> SealReport:
    """Compare all rows of ``journal`` with its seals. No snapshot is trusted. Raise `JournalError`.

    - ``anchors``: returns the anchors of a workspace by its id.
    - ``on_progress``: called with the number of the last row read so far, and of the journal's last row.
    - ``signers``: the allowed signers; None allows anybody.
    """
    workspace = find_id(journal)
    outside = [*anchors(workspace)]
    recorded = read_seals(journal)[::-1]
    own = [_Own(each.row.seq, each.signed) for each in recorded if each.signed is not None]
    wanted = {each.signed.seal.size for each in own} | {each.signed.seal.size for each in outside}
    found = _read(journal, wanted, on_progress)
    replaced, mine = _of_others(workspace, outside)
    broken = [each.row.seq for each in recorded if each.signed is None]
    sealed = []
    for each in own:
        if found.agrees(each.signed.seal, workspace):
            sealed.append(each.signed)
        else:
            broken.append(each.seq)
    good = [each for each in mine if found.agrees(each.signed.seal, workspace)]
    sealed += [each.signed for each in good]
    findings = [*replaced, *_find_changes(sealed, broken), *_find_forks(found, own, sealed, mine)]
    findings += _check_signatures(own, mine, signers)
    newest = max(sealed, key=lambda each: each.seal.size, default=None)
    return SealReport(
        workspace,
        found.size,
        newest,
        *(_find_signer(newest, own, signers) if newest else _Signer()),
        found.count_after(newest.seal.size if newest else 0),
        tuple({(each.kind, each.path): each for each in sorted(good, key=_size_of)}.values()),
        tuple(findings),
    )


class _Found:
    """The roots of a journal's tree at the wanted sizes."""

    def __init__(self) -> None:
        self.size = 0
        self.states: dict[int, tuple[bytes, int]] = {0: (EMPTY_ROOT, 0)}
        """For each size in leaves, the root and the row number of the last leaf."""
        self.next_leaves: dict[int, int] = {}
        """For each size, the row number of the first leaf after it, if there is one."""
        self.of_journal: list[int] = []
        """For each row about the journal itself, the number of leaves before the row."""

    def agrees(self, seal: Seal, workspace: str) -> bool:
        """Whether the leaves match ``seal``.

        Version 0.2.0 wrote the number of the last row, which may be a token's. Tokens have no leaf, and
        members of a server cannot read them. Therefore any number before the next leaf is accepted.
        """
        root, last = self.states.get(seal.size, (b"", 0))
        if seal.workspace != workspace or seal.root != root or seal.seq < last:
            return False
        following = self.next_leaves.get(seal.size)
        return following is None or seal.seq < following

    def count_after(self, size: int) -> int:
        return self.size - size - (len(self.of_journal) - bisect_left(self.of_journal, size))


def _read(journal: Journal, wanted: set[int], on_progress: Callable[[int, int], None]) -> _Found:
    found, tree, last = _Found(), GrowingTree(), journal.last_seq()
    seq, add = 0, tree.add
    sealed: int | None = 0 if 0 in wanted else None
    while rows := journal.rows(seq, until=last, limit=_BATCH):
        on_progress(seq, last)
        for row in rows:
            if has_leaf(row):
                add(hash_row(row))
                if sealed is not None:
                    found.next_leaves[sealed] = row.seq
                    sealed = None
                if tree.size in wanted:
                    sealed = tree.size
                    found.states[sealed] = (tree.root(), row.seq)
                if row.zone == "workspace" and is_of_journal(row):
                    found.of_journal.append(tree.size - 1)
        seq = rows[-1].seq
    on_progress(last, last)
    found.size = tree.size
    return found


def _of_others(workspace: str, outside: Sequence[Anchor]) -> tuple[list[Finding], list[Anchor]]:
    """Return the anchors of other workspaces as findings, and the anchors of this workspace.

    Without an id, all anchors count as anchors of this workspace, because the row with the id may have been
    cut off.
    """
    mine, others = [], []
    for each in outside:
        if workspace in (each.signed.seal.workspace, ""):
            mine.append(each)
        else:
            others.append(Finding("replaced", sealed=each.signed.seal.size, anchor=each))
    return others, mine


def _find_changes(sealed: Sequence[SignedSeal], broken: Sequence[int]) -> list[Finding]:
    if not broken:
        return []
    until = min(broken)
    after = max((each.seal.seq for each in sealed if each.seal.seq < until), default=0)
    return [Finding("changed", after, until)]


def _find_forks(
    found: _Found, own: Sequence[_Own], sealed: Sequence[SignedSeal], mine: Sequence[Anchor]
) -> list[Finding]:
    # A seal in the rows that does not match is a change and not a fork, because the journal continues after
    # it.
    known = {each.signed.body for each in own} | {each.body for each in sealed}
    # Matching seals belong to one journal: seals with more leaves end at later rows.
    states = sorted((each.seal.size, each.seal.seq) for each in sealed)
    findings: dict[tuple[str, str, FindingKind], Finding] = {}
    for each in sorted(mine, key=_size_of):
        size, until = each.signed.seal.size, each.signed.seal.seq
        if each.signed.body in known:
            continue
        before = bisect_left(states, (size, 0))
        after = states[before - 1][1] if before else 0
        kind: FindingKind = "truncated" if size > found.size else "forked"
        finding = Finding(kind, after, until, found.size, size, each)
        # Among successive anchors, the first shows the start, and the last shows the number of rows.
        key = each.kind, each.path, kind
        findings[key] = finding if kind == "truncated" else findings.get(key, finding)
    return [*findings.values()]


def _size_of(anchor: Anchor) -> int:
    return anchor.signed.seal.size


def _check_signatures(own: Sequence[_Own], mine: Sequence[Anchor], signers: Signers | None) -> list[Finding]:
    """Return wrong signatures and wrong signers, only the first finding for each key."""
    found: dict[tuple[FindingKind, str], Finding] = {}
    rows = {each.signed.text for each in own}
    kept = {each.signed.text: _Own(0, each.signed) for each in mine if each.signed.text not in rows}
    for each in [*own, *kept.values()]:
        until = each.signed.seal.seq
        try:
            key = read_fingerprint(each.signed)
        except InvalidSignature:
            found.setdefault(("signature", each.signed.text), Finding("signature", until=until))
            continue
        if signers is None or not (key and each.seq) or signers.find_person(key, each.seq):
            continue
        owner = signers.find_owner(key)
        kind: FindingKind = "signer" if owner else "machine"
        if owner or not signers.is_machine(key):
            found.setdefault((kind, key), Finding(kind, until=until, key=key, person=owner))
    return [*found.values()]


def _find_signer(newest: SignedSeal, own: Sequence[_Own], signers: Signers | None) -> _Signer:
    try:
        key = read_fingerprint(newest)
    except InvalidSignature:
        key = ""
    if signers is None or not key:
        return _Signer(key)
    # A seal that is only an anchor was written after the last row that it covers.
    seq = next((each.seq for each in own if each.signed.body == newest.body), newest.seal.seq + 1)
    return _Signer(key, signers.find_person(key, seq), signers.is_machine(key))
