"""Who sealed: a seal counts as somebody's only by a key that was enrolled at its row, and a machine's key
is known from its first use on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from watchroom import Workspace
from watchroom.features.people.rows import Person
from watchroom.history.seal import Anchors, SealWriter
from watchroom.history.seal.anchors import state_folder
from watchroom.platform.signing import KeySigner, Signer

from seal.sealed import notes

DANA, EVE, MACHINE = (KeySigner(bytes([number]) * 32) for number in range(3))


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Workspace]:
    """A closed workspace of dana, its owner, and eve."""
    with Workspace.open(tmp_path / "team", agents=["alice"]) as workspace:
        workspace.signing.signer = DANA
        workspace.people.add("human:dana", Person("dana", "owner", (DANA.key.line,)))
        workspace.people.add("human:dana", Person("eve", "supervisor", (EVE.key.line,)))
        yield workspace


def seal(workspace: Workspace) -> None:
    workspace.journal.append(notes(1))
    assert workspace.sealing.write_due(Event(), at_once=True)


def forge(workspace: Workspace, signer: Signer) -> None:
    """Seal with ``signer``, whoever may: with a program that asks nobody."""
    journal = workspace.journal
    journal.append(notes(1))
    anchors = Anchors(os.path.join(workspace.root, "forger"), workspace.root)
    writer = SealWriter(journal, lambda draft: journal.append([draft])[0], lambda: anchors, lambda: signer)
    assert writer.write_due(Event(), at_once=True)


def found(workspace: Workspace) -> list[tuple[str, str, str]]:
    return [(each.kind, each.key, each.person) for each in workspace.sealing.verify().findings]


def test_a_seal_is_by_the_person_whose_key_was_enrolled_at_its_row(team: Workspace) -> None:
    seal(team)
    report = team.sealing.verify()
    assert (report.person, report.signer, report.findings) == ("dana", DANA.key.fingerprint, ())
    team.signing.signer = EVE
    seal(team)
    team.signing.signer = DANA
    team.people.revoke("human:dana", "eve")
    # She was there when she sealed.
    report = team.sealing.verify()
    assert (report.person, report.findings) == ("eve", ())


def test_the_key_of_somebody_who_was_revoked_seals_nothing_any_more(team: Workspace) -> None:
    seal(team)
    team.people.revoke("human:dana", "eve")
    # Her dashboard still has it unlocked: it goes on with the machine's key.
    team.signing.signer = EVE
    seal(team)
    report = team.sealing.verify()
    assert (report.person, report.is_machine, report.findings) == ("", True, ())
    forge(team, EVE)
    assert found(team) == [("signer", EVE.key.fingerprint, "eve")]


def test_another_machines_key_is_told_until_it_is_trusted(team: Workspace) -> None:
    team.signing.signer = None
    seal(team)
    known = team.sealing.verify()
    assert (known.is_machine, known.findings) == (True, ())
    forge(team, MACHINE)
    forge(team, MACHINE)
    assert found(team) == [("machine", MACHINE.key.fingerprint, "")]
    assert not team.sealing.verify().is_machine
    team.sealing.trust_key(MACHINE.key.fingerprint)
    report = team.sealing.verify()
    assert (report.signer, report.is_machine, report.findings) == (MACHINE.key.fingerprint, True, ())


def test_a_machines_key_that_was_replaced_is_told(team: Workspace) -> None:
    team.signing.signer = None
    seal(team)
    # The folder may have a key of an earlier test's.
    private = os.urandom(32)
    Path(state_folder(), "machine.key").write_bytes(private)
    seal(team)
    other = KeySigner(private)
    assert found(team) == [("machine", other.key.fingerprint, "")]


def test_what_sealed_before_this_user_first_looked_is_taken_at_its_word(team: Workspace) -> None:
    forge(team, MACHINE)
    assert found(team) == []
    team.signing.signer = None
    seal(team)
    assert found(team) == []
