"""In a closed workspace a decision counts only as it was signed, by somebody who may: TRUST, section 1."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from calls import ok
from people.conftest import BOT, DANA, EVE, STRANGER, Team, close, person
from watchroom import Agent, Workspace
from watchroom.algorithms.sshsig import parse_key, verify
from watchroom.errors import MayNotDecide, PersonRefused, RequestClosed, SignatureRequired, WatchroomError
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.decisions import SIGNATURE, SIGNED
from watchroom.features.people.rows import Person
from watchroom.features.requests.rows import Answer, decide_all, dump_answer
from watchroom.history.seal.anchors import state_folder
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, Json, Row, Write


def approval(team: Team, number: int) -> Answer:
    return decide_all(team.workspace.requests.find(number), True)


def answer(team: Team, number: int, who: str = "human:eve") -> Row:
    return team.workspace.requests.answer(CallContext(who), number, approval(team, number))


def outcome(team: Team, name: str = "1") -> str | None:
    """Who answered the request of that name so that it counts."""
    ended = team.workspace.requests.ended(f"alice/1/{name}")
    return ended.row.actor if ended else None


def rule_of(team: Team, number: int, who: str) -> str:
    with pytest.raises(MayNotDecide) as caught:
        answer(team, number, who)
    return str(caught.value.values["rule"])


def forge(team: Team, row: Row, **changed: object) -> None:
    """Put ``row`` into the journal's file, with these columns changed, as any process of the user can."""
    fields = {**row._asdict(), **changed}
    fields["detail"] = fields.pop("detail_json")
    columns = ", ".join(fields)
    with closing(sqlite3.connect(team.root / ".watchroom/journal.db")) as connection, connection:
        content = dump_answer(Answer(decisions=approval(team, team.ask("other")).decisions))
        connection.execute(
            f"INSERT INTO rows ({columns}, content) VALUES ({', '.join('?' * len(fields))}, ?)",
            (*fields.values(), changed.get("content", content)),
        )


def test_an_answer_that_is_signed_counts_and_openssh_can_check_it(team: Team) -> None:
    number = team.ask()
    team.sign_as(EVE)
    row = answer(team, number)
    assert outcome(team) == "human:eve"
    signed, signature = str(row.detail[SIGNED]), str(row.detail[SIGNATURE])
    verify(signature, signed.encode(), "watchroom-decision", EVE.key)
    assert json.loads(signed)["person"] == "human:eve"
    assert len(signed) < 1000


def test_a_revert_of_an_external_edit_is_signed(team: Team) -> None:
    workspace, eve = team.workspace, team.workspace.tools_for_human("eve")
    first: dict[str, Json] = {"filepath": "a", "content": "1\n", "message": "m", "expected_version": 0}
    ok(workspace.tools("alice"), "collab_write", **first)
    file = team.root / "collaborative/current/a"
    file.write_text("mine\n")
    workspace.scan()
    with pytest.raises(SignatureRequired):
        workspace.conflicts.revert(CallContext("human:eve"), "a", None, "")
    assert file.read_text() == "mine\n"
    team.sign_as(EVE)
    ok(eve, "revert_outside_edit", filepath="a")
    model = read_model(workspace.journal, workspace.journal.last_seq())
    assert (model.needs, file.read_text()) == ((), "1\n")
    file.write_text("mine\n")
    assert [row.tool for row in workspace.scan()] == ["outside_edit"]


def test_without_a_key_nobody_decides_but_everybody_can_stop(team: Team) -> None:
    number = team.ask()
    with pytest.raises(SignatureRequired):
        answer(team, number)
    assert outcome(team) is None
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    eve = team.workspace.tools_for_human("eve")
    ok(eve, "pause_agent", agent_id="alice")
    assert eve.dispatch_tool_call("resume_agent", {"agent_id": "alice"})["error"] == "signature_required"
    ok(eve, "cancel_agent", agent_id="alice")


def test_a_viewer_only_looks(team: Team) -> None:
    viktor = team.workspace.tools_for_human("viktor")
    ok(viktor, "collab_list")
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    paused = viktor.dispatch_tool_call("pause_agent", {"agent_id": "alice"})
    written = viktor.dispatch_tool_call("collab_write", {"filepath": "a", "content": "x", "message": "m"})
    assert [paused["error"], written["error"]] == ["may_not_decide"] * 2


def test_who_may_not_decide_is_told_so(team: Team) -> None:
    number = team.ask()
    for signer, who, rule in (
        (BOT, "human:viktor", "decision_role"),
        (STRANGER, "human:eve", "decision_key"),
        (EVE, "human:dana", "decision_key"),
        (STRANGER, "human:mallory", "decision_stranger"),
    ):
        team.sign_as(signer)
        assert rule_of(team, number, who) == rule
    team.sign_as(EVE)
    with pytest.raises(MayNotDecide):
        team.workspace.people.add("human:eve", person("eve", "owner", EVE))
    assert outcome(team) is None


def test_a_forged_answer_ends_nothing_and_keeps_nobody_from_answering(team: Team) -> None:
    asked = team.workspace.journal.row(team.ask())
    assert asked is not None
    forge(team, asked, seq=asked.seq + 10, actor="human:dana", tool=ANSWER, version=2, base=1)
    assert outcome(team) is None
    team.sign_as(EVE)
    answer(team, asked.seq)
    assert outcome(team) == "human:eve"
    with pytest.raises(RequestClosed):
        answer(team, asked.seq)


def test_a_request_expires_though_a_forged_answer_stands_there(team: Team) -> None:
    asked = team.workspace.journal.row(team.ask())
    assert asked is not None
    forge(team, asked, seq=asked.seq + 10, actor="human:dana", tool=ANSWER, version=2, base=1)
    ended = team.workspace.requests.expire(asked.path)
    assert ended.answer == Answer(expired=True)


def test_a_signature_is_no_other_requests_and_no_other_answers(team: Team) -> None:
    first, second = team.ask("1"), team.ask("2")
    team.sign_as(EVE)
    row = answer(team, first)
    path, seq = "alice/1/2", team.workspace.journal.last_seq()
    forge(team, row, seq=seq + 10, path=path)
    detail = json.dumps({**row.detail, "request": second})
    forge(team, row, seq=seq + 20, path=path, version=3, base=2, detail_json=detail)
    third = team.workspace.journal.row(seq + 20)
    assert third is not None
    assert team.workspace.people.find_flaw(third) == "decision_differs"
    assert outcome(team, "2") is None


def test_a_signature_is_no_other_workspaces(team: Team, tmp_path: Path) -> None:
    team.ask()
    with Workspace.open(tmp_path / "other", [Agent("alice")]) as other:
        close(other)
        there = Team(other, tmp_path / "other")
        number = there.ask()
        there.sign_as(EVE)
        row = answer(there, number)
    forge(team, row, seq=team.workspace.journal.last_seq() + 10)
    assert outcome(team) is None


def test_who_enrols_themselves_is_not_enrolled(team: Team) -> None:
    team.sign_as(STRANGER)
    with pytest.raises(MayNotDecide):
        team.workspace.people.add("human:mallory", person("mallory", "owner", STRANGER))
    team.sign_as(None)
    content = person("mallory", "owner", STRANGER).dump()
    team.workspace.journal.append([Write("human:mallory", "add_person", "person", "mallory", content)])
    assert [each.name for each in team.workspace.people.current().persons] == ["dana", "eve", "viktor"]


def test_who_is_revoked_decides_no_more_but_what_they_decided_stands(team: Team) -> None:
    team.sign_as(EVE)
    answer(team, team.ask("1"))
    team.sign_as(DANA)
    team.workspace.people.revoke("human:dana", "eve")
    team.sign_as(EVE)
    assert rule_of(team, team.ask("2"), "human:eve") == "decision_stranger"
    assert outcome(team, "1") == "human:eve"


def test_what_somebody_decided_after_a_row_is_disputed_when_they_are_revoked(team: Team) -> None:
    people = team.workspace.people
    team.sign_as(EVE)
    before, after = (answer(team, team.ask(name)) for name in ("1", "2"))
    team.sign_as(DANA)
    revoked = people.revoke("human:dana", "eve", since=before.seq)
    assert people.find_dispute(before) is None
    assert people.find_dispute(after) == revoked


def test_limits_bound_what_somebody_answers(team: Team) -> None:
    people = team.workspace.people
    team.sign_as(DANA)
    limited = Person("bot", "supervisor", (STRANGER.key.line,), tools=("collab_*",), agents=("alice",))
    people.add("human:dana", limited)
    team.sign_as(STRANGER)
    assert rule_of(team, team.ask("1"), "human:bot") == "decision_limits"
    team.sign_as(DANA)
    people.add("human:dana", limited._replace(tools=("run_*",)))
    team.sign_as(STRANGER)
    answer(team, team.ask("2"), "human:bot")
    team.workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    for tools, agents in ((("*",), ()), ((), ("*",))):
        team.sign_as(DANA)
        people.add("human:dana", limited._replace(tools=tools, agents=agents))
        team.sign_as(STRANGER)
        ok(team.workspace.tools_for_human("bot"), "pause_agent", agent_id="alice")
        resumed = team.workspace.tools_for_human("bot").dispatch_tool_call(
            "resume_agent", {"agent_id": "alice"}
        )
        assert resumed["error"] == "may_not_decide", "who is limited to some calls decides nothing else"
    team.sign_as(DANA)
    people.add("human:dana", limited._replace(tools=(), expires=1))
    team.sign_as(STRANGER)
    assert rule_of(team, team.ask("3"), "human:bot") == "decision_expired"


def test_an_open_workspace_asks_for_no_key_and_can_be_open_again(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice")]) as workspace:
        team = Team(workspace, tmp_path / "team")
        answer(team, team.ask("1"), "human:anybody")
        assert outcome(team, "1") == "human:anybody"
        close(workspace)
        assert outcome(team, "1") == "human:anybody"
        with pytest.raises(SignatureRequired):
            answer(team, team.ask("2"), "human:anybody")
        team.sign_as(DANA)
        with pytest.raises(PersonRefused):
            workspace.people.revoke("human:dana", "dana")
        for name in ("eve", "viktor", "dana"):
            workspace.people.revoke("human:dana", name)
        team.sign_as(None)
        answer(team, team.ask("3"), "human:anybody")
        assert outcome(team, "3") == "human:anybody"


def test_the_first_person_is_an_owner_who_enrols_themselves(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "team", [Agent("alice")]) as workspace:
        workspace.signing.signer = DANA
        for actor, first in (
            ("human:eve", person("dana", "owner", DANA)),
            ("human:dana", person("dana", "owner", EVE)),
        ):
            with pytest.raises(WatchroomError):
                workspace.people.add(actor, first)
        with pytest.raises(PersonRefused):
            workspace.people.add("human:dana", person("dana", "supervisor", DANA))
        assert not workspace.people.current().is_closed


def test_a_key_line_is_kept_as_it_is_read(team: Team) -> None:
    found = team.workspace.people.current().find("human:eve")
    assert found is not None
    assert parse_key(found.keys[0]) == EVE.key


def test_a_forged_decision_is_shown_and_closes_nothing(team: Team) -> None:
    asked = team.workspace.journal.row(team.ask())
    assert asked is not None
    forge(team, asked, seq=asked.seq + 10, actor="human:dana", tool=ANSWER, version=2, base=1)
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    assert [each.row.path for each in model.requests] == ["alice/1/other", asked.path]
    forged = next(need for need in model.needs if need.kind == "forged")
    assert (forged.row.seq, forged.row.error) == (asked.seq + 10, "decision_unsigned")
    problem = next(each for each in team.workspace.verify() if each.kind == "decision")
    assert f"row {asked.seq + 10}" in problem.what
    assert "not signed" in problem.what


def test_what_was_signed_is_no_need_in_the_dashboard_and_no_problem(team: Team) -> None:
    team.sign_as(EVE)
    answer(team, team.ask())
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    assert (model.needs, len(model.ended_requests)) == ((), 1)
    assert [each.name for each in model.people.persons] == ["dana", "eve", "viktor"]
    assert team.workspace.verify() == []


def test_a_decision_signs_the_journal_as_it_was(team: Team) -> None:
    """Whoever changes a row and seals all anew with the machine's key is found by what eve has signed."""
    workspace = team.workspace
    sealed = workspace.sealing.write_due(Event(), at_once=True)
    assert sealed is not None
    team.sign_as(EVE)
    answer(team, team.ask())
    team.sign_as(None)
    assert workspace.sealing.verify().findings == ()
    with closing(sqlite3.connect(team.root / ".watchroom/journal.db")) as connection, connection:
        for trigger in ("rows_never_change", "rows_never_go"):
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute("UPDATE rows SET message = 'other' WHERE seq = 1")
        connection.execute("DELETE FROM rows WHERE tool = ?", (sealed.tool,))
    shutil.rmtree(state_folder())
    found = workspace.sealing.verify().findings
    assert [(each.kind, each.anchor and each.anchor.kind) for each in found] == [("forked", "decision")]
