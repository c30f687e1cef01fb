"""A signed decision counts once, and only where it was signed: TRUST, section 2."""

from __future__ import annotations

import json
from pathlib import Path

from calls import ok
from people.conftest import DANA, EVE, Team, close, person
from people.effects import REQUEST
from watchroom import Agent, Workspace
from watchroom.features.config.rows import SETTINGS_PATH, SETTINGS_ZONE
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.decisions import (
    FORMAT,
    LEGACY_FORMAT,
    NAMESPACE,
    SIGNATURE,
    SIGNED,
    describe_decision,
    sign_draft,
)
from watchroom.features.people.rows import ID_ZONE
from watchroom.features.people.rules import ID_PATH
from watchroom.features.requests.rows import decide_all, dump_answer
from watchroom.kernel.call_context import CallContext
from watchroom.model import IDENTIFY, RESUME, Draft, Json, Note, Row, Write
from watchroom.platform.signing import KeySigner

LAX = 'allowed_hosts = ["*.example.org"]\n'


def again(workspace: Workspace, row: Row, origin: Workspace | None = None) -> Row:
    """Append what ``row`` of ``origin`` (default: of ``workspace``) says once more, with its statement and
    signature; returns the new row."""
    content = (origin or workspace).journal.content(row.seq)
    draft: Draft
    if row.version is None:
        draft = Note(
            row.actor, row.tool, row.zone, row.path, message=row.message, content=content, detail=row.detail
        )
    else:
        base = row.base if row.base is not None else -1
        draft = Write(row.actor, row.tool, row.zone, row.path, content, row.message, base, row.detail)
        head = workspace.journal.head(row.zone, row.path)
        if head is not None and base not in (-1, head.version):
            # Whoever writes to the file chooses the base that the row names.
            ((copied, _),) = workspace.journal.append([draft._replace(expected=-1)])
            return _with_base(workspace, copied, base)
    ((copied, _),) = workspace.journal.append([draft])
    return copied


def _with_base(workspace: Workspace, row: Row, base: int) -> Row:
    import sqlite3

    database = sqlite3.connect(Path(workspace.root, ".watchroom/journal.db"))
    for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        database.execute(f"DROP TRIGGER {name}")
    database.execute("UPDATE rows SET base = ? WHERE seq = ?", (base, row.seq))
    database.commit()
    database.close()
    found = workspace.journal.row(row.seq)
    assert found is not None
    return found


def reasons(workspace: Workspace) -> list[str]:
    """Why rows are needs as forged, as the model says."""
    model = read_model(workspace.journal, workspace.journal.last_seq())
    return [need.row.error for need in model.needs if need.kind == "forged"]


def sign_settings(team: Team, text: str) -> Row:
    team.sign_as(DANA)
    version, _ = team.workspace.registry.settings()
    row = team.workspace._store.write(
        Write("human:dana", "sign_settings", SETTINGS_ZONE, SETTINGS_PATH, text, expected=version)
    ).row
    team.sign_as(None)
    return row


def test_old_settings_that_were_signed_do_not_hold_again(team: Team) -> None:
    lax = sign_settings(team, LAX)
    sign_settings(team, "")
    copied = again(team.workspace, lax)
    assert team.workspace.people.find_flaw(copied) == "decision_repeated"
    assert list(team.workspace.config.allowed_hosts) == []
    assert reasons(team.workspace) == ["decision_repeated"]


def test_the_enrolment_of_a_revoked_owner_is_not_theirs_again(team: Team) -> None:
    team.sign_as(DANA)
    people = team.workspace.people
    people.add("human:dana", person("eve", "owner", EVE))
    enrolled = team.workspace.journal.head("person", "eve")
    assert enrolled is not None
    people.revoke("human:dana", "eve")
    team.sign_as(None)
    copied = again(team.workspace, enrolled)
    assert people.find_flaw(copied) == "decision_repeated"
    assert people.current().find("human:eve") is None


def test_a_resume_that_was_signed_resumes_once(team: Team) -> None:
    workspace, eve = team.workspace, team.workspace.tools_for_human("eve")
    workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    ok(eve, "stop_agents", agents=["alice"])
    team.sign_as(EVE)
    ok(eve, "release_agents")
    team.sign_as(None)
    resumed = next(row for row in workspace.journal.rows(0) if row.tool == RESUME)
    ok(eve, "stop_agents", agents=["alice"])
    since = workspace.journal.last_seq()
    again(workspace, resumed)
    assert [*workspace.stops.stopped()] == ["alice"]
    assert workspace.session_zone.controls("alice/1", since) == []
    model = read_model(workspace.journal, workspace.journal.last_seq())
    assert [*model.stopped] == ["alice"]
    assert reasons(workspace) == ["decision_repeated"]


def test_a_decision_of_the_original_does_not_count_in_a_fork(team: Team, tmp_path: Path) -> None:
    number = team.ask()
    Workspace.fork(team.workspace.journal, team.workspace.journal.last_seq(), tmp_path / "fork")
    team.sign_as(EVE)
    answered = team.workspace.requests.answer(CallContext("human:eve"), number, decide_all(REQUEST, True))
    with Workspace.open(tmp_path / "fork", create=False) as fork:
        assert fork.people.current().workspace != team.workspace.people.current().workspace
        assert fork.verify() == []
        close(fork)
        copied = again(fork, answered, team.workspace)
        assert fork.people.find_flaw(copied) == "decision_elsewhere"
        assert fork.requests.ended("alice/1/1", REQUEST) is None


def test_a_decision_of_another_workspace_with_the_same_id_does_not_count(team: Team, tmp_path: Path) -> None:
    planted = team.workspace.people.current().workspace
    with Workspace.open(tmp_path / "other", [Agent("alice"), Agent("bob")]) as other:
        other.journal.append([Write("system", IDENTIFY, ID_ZONE, ID_PATH, planted, expected=0)])
        close(other)
        assert other.people.current().workspace == planted
        there = Team(other, tmp_path / "other")
        number = there.ask()
        while team.workspace.journal.last_seq() + 1 < number:
            team.workspace.journal.append([Note("alice", "collab_list", "collab", "")])
        assert team.ask() == number
        team.sign_as(EVE)
        answered = team.workspace.requests.answer(CallContext("human:eve"), number, decide_all(REQUEST, True))
        copied = again(other, answered, team.workspace)
        assert other.people.find_flaw(copied) == "decision_elsewhere"
        assert other.requests.ended("alice/1/1", REQUEST) is None


def test_a_decision_in_the_form_of_0_2_0_counts_until_somebody_is_enrolled_in_the_new_form(
    tmp_path: Path,
) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice"), Agent("bob")]) as workspace:
        people = workspace.people
        people.identify("human:dana")
        content = person("dana", "owner", DANA).dump()
        legacy(workspace, Write("human:dana", "add_person", "person", "dana", content, expected=0), DANA)
        assert people.current().accepts_legacy
        first, second = (
            workspace.requests.ask(CallContext("alice"), f"alice/1/{number}", REQUEST).seq
            for number in (1, 2)
        )
        legacy(workspace, answer("alice/1/1", first), DANA)
        assert workspace.requests.ended("alice/1/1", REQUEST) is not None
        workspace.signing.signer = DANA
        people.add("human:dana", person("dana", "owner", DANA))
        workspace.signing.signer = None
        legacy(workspace, answer("alice/1/2", second), DANA)
        assert workspace.requests.ended("alice/1/1", REQUEST) is not None
        assert workspace.requests.ended("alice/1/2", REQUEST) is None
        assert reasons(workspace) == ["decision_legacy"]


def answer(path: str, number: int) -> Write:
    text = dump_answer(decide_all(REQUEST, True))
    detail: dict[str, Json] = {"request": number, "outcome": "approved", "terminal": False}
    return Write("human:dana", "answer_request", "request", path, text, expected=1, detail=detail)


def legacy(workspace: Workspace, draft: Write, signer: KeySigner) -> None:
    """Append ``draft``, signed as version 0.2.0 did."""
    people, journal = workspace.people.current(), workspace.journal
    made = describe_decision(draft, people, signer.key, journal.now(), workspace.people.evidence, None)
    assert json.loads(made)["format"] == FORMAT
    fields = {**json.loads(made), "format": LEGACY_FORMAT}
    del fields["position"]
    statement = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    signed = sign_draft(draft, statement, signer.sign(statement.encode(), NAMESPACE))
    assert {SIGNED, SIGNATURE} <= {*(signed.detail or {})}
    ((row, _),) = journal.append([signed])
    assert row.outcome == "ok"
