"""Compares a journal with all checkpoints of it: those among its rows, and those that are kept elsewhere."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from watchroom.journal import Journal
from watchroom.model import is_of_journal
from watchroom.rules.checkpoint_note import Checkpoint, SignedCheckpoint
from watchroom.rules.merkle import EMPTY_ROOT, GrowingTree
from watchroom.rules.row_leaf import has_leaf, hash_row
from watchroom.sshsig import InvalidSignature
from watchroom.transparency.anchors import Anchor
from watchroom.transparency.checkpoint_rows import recorded_checkpoints
from watchroom.transparency.signers import Signers, read_fingerprint
from watchroom.transparency.workspace_id import find_workspace_id

FindingKind: TypeAlias = Literal[
    "changed", "truncated", "forked", "replaced", "signature", "signer", "machine"
]
"""Rows were changed between two checkpoints; the journal is shorter than it was; it is another one than was
published since some row; another workspace was sealed here; a signature is wrong, or by somebody who was not
enrolled then, or by a key that is not known."""
_BATCH: Final = 5_000


class Finding(NamedTuple):
    """One thing that shows tampering. ``after``: the last row that still is as it was sealed (0: none is);
    ``until``: the row of the first checkpoint that does not agree, of one kept elsewhere the last row that it
    covers. ``rows`` there are, ``sealed`` there were. ``anchor``: what shows it, None where the journal's own
    rows do. ``key`` is the fingerprint of who signed and should not have, ``person`` whose it was."""

    kind: FindingKind
    after: int = 0
    until: int = 0
    rows: int = 0
    sealed: int = 0
    anchor: Anchor | None = None
    key: str = ""
    person: str = ""


class SealReport(NamedTuple):
    """What the checkpoints of a journal say. ``workspace`` is its id, ``rows`` how many leaves it has.
    ``newest`` is the largest checkpoint that agrees, ``signer`` the fingerprint of who signed it (empty: it
    is unsigned, or that cannot be checked here), who was the ``person`` of that name then, or ``is_machine``:
    a machine that is trusted. ``since`` tells how many rows came after it. ``anchors`` are those kept
    elsewhere that agree, of each place the newest; ``missing`` places where one should be, and none is."""

    workspace: str = ""
    rows: int = 0
    newest: SignedCheckpoint | None = None
    signer: str = ""
    person: str = ""
    is_machine: bool = False
    since: int = 0
    anchors: tuple[Anchor, ...] = ()
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()


class _Own(NamedTuple):
    seq: int
    signed: SignedCheckpoint


class _Signer(NamedTuple):
    key: str = ""
    person: str = ""
    is_machine: bool = False


def verify_checkpoints(
    journal: Journal,
    anchors: Callable[[str], Sequence[Anchor]] = lambda _: (),
    told: Callable[[int, int], None] = lambda _, __: None,
    signers: Signers | None = None,
) -> SealReport:
    """Compare all rows of ``journal`` with its checkpoints, and with the ``anchors`` of a workspace, which
    are given for its id. ``told`` gets how far it is: up to which row, of which. ``signers`` know who may
    sign (None: anybody). Trusts nothing that is derived. Raises `JournalError`."""
    workspace = find_workspace_id(journal)
    outside = [*anchors(workspace)]
    recorded = recorded_checkpoints(journal)[::-1]
    own = [_Own(each.row.seq, each.signed) for each in recorded if each.signed is not None]
    wanted = {each.signed.checkpoint.size for each in own} | {each.signed.checkpoint.size for each in outside}
    found = _read(journal, wanted, told)
    replaced, mine = _of_others(workspace, outside)
    broken = [each.row.seq for each in recorded if each.signed is None]
    sealed = []
    for each in own:
        if found.agrees(each.signed.checkpoint, workspace):
            sealed.append(each.signed)
        else:
            broken.append(each.seq)
    good = [each for each in mine if found.agrees(each.signed.checkpoint, workspace)]
    sealed += [each.signed for each in good]
    findings = [*replaced, *_find_changes(sealed, broken), *_find_forks(found, own, sealed, mine)]
    findings += _check_signatures(own, mine, signers)
    newest = max(sealed, key=lambda each: each.checkpoint.size, default=None)
    return SealReport(
        workspace,
        found.size,
        newest,
        *(_find_signer(newest, own, signers) if newest else _Signer()),
        found.count_after(newest.checkpoint.size if newest else 0),
        tuple({(each.kind, each.path): each for each in sorted(good, key=_size_of)}.values()),
        tuple(findings),
    )


class _Found:
    """The roots of a journal at the sizes that were asked for."""

    def __init__(self) -> None:
        self.size = 0
        self.states: dict[int, tuple[bytes, int]] = {0: (EMPTY_ROOT, 0)}
        """By size, the root and the number of the last leaf's row."""
        self.next_leaves: dict[int, int] = {}
        """By size, the number of the row of the leaf that follows, if there is one."""
        self.of_journal: list[int] = []
        """How many leaves were before each row that says something of the journal itself."""

    def agrees(self, checkpoint: Checkpoint, workspace: str) -> bool:
        """Whether the leaves are those that ``checkpoint`` sealed.

        Version 0.2.0 wrote the number of the last row, which may be a token's. Tokens have no leaf, and
        members of a server cannot read them. Therefore any number before the next leaf agrees.
        """
        root, last = self.states.get(checkpoint.size, (b"", 0))
        if checkpoint.workspace != workspace or checkpoint.root != root or checkpoint.seq < last:
            return False
        following = self.next_leaves.get(checkpoint.size)
        return following is None or checkpoint.seq < following

    def count_after(self, size: int) -> int:
        return self.size - size - (len(self.of_journal) - bisect_left(self.of_journal, size))


def _read(journal: Journal, wanted: set[int], told: Callable[[int, int], None]) -> _Found:
    found, tree, last = _Found(), GrowingTree(), journal.last_seq()
    seq, add = 0, tree.add
    sealed: int | None = 0 if 0 in wanted else None
    while rows := journal.rows(seq, until=last, limit=_BATCH):
        told(seq, last)
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
    told(last, last)
    found.size = tree.size
    return found


def _of_others(workspace: str, outside: Sequence[Anchor]) -> tuple[list[Finding], list[Anchor]]:
    """Of the anchors those of another workspace, as findings, and those of this one: all where it has no id,
    which may have been cut off."""
    mine, others = [], []
    for each in outside:
        if workspace in (each.signed.checkpoint.workspace, ""):
            mine.append(each)
        else:
            others.append(Finding("replaced", sealed=each.signed.checkpoint.size, anchor=each))
    return others, mine


def _find_changes(sealed: Sequence[SignedCheckpoint], broken: Sequence[int]) -> list[Finding]:
    if not broken:
        return []
    until = min(broken)
    after = max((each.checkpoint.seq for each in sealed if each.checkpoint.seq < until), default=0)
    return [Finding("changed", after, until)]


def _find_forks(
    found: _Found, own: Sequence[_Own], sealed: Sequence[SignedCheckpoint], mine: Sequence[Anchor]
) -> list[Finding]:
    # What the journal's own checkpoint shows is a change: it goes on from there.
    told = {each.signed.body for each in own} | {each.body for each in sealed}
    # What agrees is of one journal: the more rows it has, the later the last one is.
    states = sorted((each.checkpoint.size, each.checkpoint.seq) for each in sealed)
    findings: dict[tuple[str, str, FindingKind], Finding] = {}
    for each in sorted(mine, key=_size_of):
        size, until = each.signed.checkpoint.size, each.signed.checkpoint.seq
        if each.signed.body in told:
            continue
        before = bisect_left(states, (size, 0))
        after = states[before - 1][1] if before else 0
        kind: FindingKind = "truncated" if size > found.size else "forked"
        finding = Finding(kind, after, until, found.size, size, each)
        # Of those that are kept one after the other the first tells since when, the last how many there were.
        key = each.kind, each.path, kind
        findings[key] = finding if kind == "truncated" else findings.get(key, finding)
    return [*findings.values()]


def _size_of(anchor: Anchor) -> int:
    return anchor.signed.checkpoint.size


def _check_signatures(own: Sequence[_Own], mine: Sequence[Anchor], signers: Signers | None) -> list[Finding]:
    """What is wrong with signatures, and with who signed; of each key the first."""
    found: dict[tuple[FindingKind, str], Finding] = {}
    rows = {each.signed.text for each in own}
    kept = {each.signed.text: _Own(0, each.signed) for each in mine if each.signed.text not in rows}
    for each in [*own, *kept.values()]:
        until = each.signed.checkpoint.seq
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


def _find_signer(newest: SignedCheckpoint, own: Sequence[_Own], signers: Signers | None) -> _Signer:
    try:
        key = read_fingerprint(newest)
    except InvalidSignature:
        key = ""
    if signers is None or not key:
        return _Signer(key)
    # What is only kept elsewhere came after the last row that it covers.
    seq = next((each.seq for each in own if each.signed.body == newest.body), newest.checkpoint.seq + 1)
    return _Signer(key, signers.find_person(key, seq), signers.is_machine(key))
