"""Grants of people: who can give them, which requests they answer, and when they end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from clock import HOUR, JumpingClock
from people.conftest import BOT, DANA, EVE, STRANGER, Team, close, person
from people.planted import plant, plant_many
from watchroom import Agent, Workspace
from watchroom.errors import (
    GrantEnded,
    GrantNotFound,
    GrantRefused,
    JournalError,
    MayNotDecide,
    RequestNotFound,
    SignatureRequired,
)
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.decisions import SIGNATURE, SIGNED
from watchroom.features.policy.grants import PLACE, GrantChoice, Scope
from watchroom.features.policy.reads import MAX_GRANTS, list_newest
from watchroom.features.policy.service import Grants
from watchroom.features.requests.rows import PendingCall, Request, decide_all, dump_answer
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import ANSWER, CANCEL, GRANT, REVOKE_GRANT, USE_GRANT, Json, Row, Write

EVE_DECIDES = CallContext("human:eve")
HELPER = """
import sys
from watchroom import Workspace
from people.test_grants import ask
with Workspace.open(sys.argv[1], create=False) as workspace:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        ask(workspace, f"{sys.argv[2]}{number}")
"""


def request(command: str = "npm test", folder: str = "/app") -> Request:
    call = PendingCall("c", "Bash", json.dumps({"command": command}))
    return Request("approve", calls=(call,), metadata={PLACE: {"folder": folder, "target": ""}})


def ask(workspace: Workspace, name: str, command: str = "npm test", session: str = "s1") -> Row:
    return workspace.requests.ask(CallContext("alice"), f"alice/{session}/{name}", request(command))


def end_of(workspace: Workspace, asked: Row) -> Row | None:
    ended = workspace.requests.ended(asked.path, workspace.requests.read(asked))
    return ended.row if ended is not None else None


def is_approved(workspace: Workspace, asked: Row) -> bool:
    ended = workspace.requests.ended(asked.path, workspace.requests.read(asked))
    return ended is not None and ended.answer is not None and ended.answer.decisions[0].approved


def grant(
    workspace: Workspace,
    name: str = "shown",
    *,
    uses: int = 3,
    scope: Scope = "session",
    seconds: int | None = None,
    words: int | None = None,
) -> Row:
    """Ask, and grant what was asked as eve."""
    asked = ask(workspace, name)
    return workspace.grants.make(EVE_DECIDES, asked.seq, GrantChoice(scope, uses, seconds, words))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """An open workspace."""
    with Workspace.open(tmp_path / "team", [Agent("alice"), Agent("bob")]) as workspace:
        yield workspace


def test_a_grant_answers_the_next_requests_and_then_people_are_asked_again(workspace: Workspace) -> None:
    made = grant(workspace, uses=2)
    asked = [ask(workspace, "1")]
    (state,) = workspace.grants.list_active("alice")
    assert (state.row, state.uses_left) == (made, 1)
    assert state.last_use is not None
    assert state.last_use.detail["request"] == asked[0].seq
    asked += [ask(workspace, name) for name in ("2", "3")]
    assert [is_approved(workspace, each) for each in asked] == [True, True, False]
    ended = end_of(workspace, asked[0])
    assert ended is not None
    assert (ended.actor, ended.detail["outcome"]) == ("system", "approved")
    assert workspace.grants.list_active() == []
    model = read_model(workspace.journal, workspace.journal.last_seq())
    assert [need.kind for need in model.needs] == ["request", "request"]


def test_the_shown_request_itself_still_needs_its_answer(workspace: Workspace) -> None:
    asked = ask(workspace, "shown")
    workspace.grants.make(EVE_DECIDES, asked.seq, GrantChoice("session", 1))
    assert end_of(workspace, asked) is None
    ask(workspace, "shown")
    assert end_of(workspace, asked) is None


def test_a_grant_does_not_cover_another_command_or_session(workspace: Workspace) -> None:
    grant(workspace)
    assert end_of(workspace, ask(workspace, "1", "npm test x")) is None
    assert end_of(workspace, ask(workspace, "1", session="s2")) is None
    assert is_approved(workspace, ask(workspace, "2"))


def test_a_prefix_in_a_folder_covers_every_session_until_its_end(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = JumpingClock(monkeypatch)
    grant(workspace, scope="place", seconds=3600, words=1, uses=9)
    assert is_approved(workspace, ask(workspace, "1", "npm run x", session="s2"))
    clock.ahead = 2 * HOUR
    assert end_of(workspace, ask(workspace, "2")) is None
    # The row above has the later time, and a clock that is set back does not extend the grant.
    clock.ahead = 0
    assert end_of(workspace, ask(workspace, "3")) is None


def test_rows_that_no_person_made_do_not_hide_a_grant(workspace: Workspace, tmp_path: Path) -> None:
    made = grant(workspace)
    content = workspace.journal.content(made.seq)
    forged: dict[str, object] = {
        "actor": "bob",
        "tool": GRANT,
        "zone": "grant",
        "content": content,
        "version": 1,
    }
    uses: dict[str, object] = {**forged, "tool": USE_GRANT, "version": 2}
    plant_many(tmp_path / "team", [{**forged, "path": f"alice/{n:04}"} for n in range(2 * MAX_GRANTS)])
    plant_many(tmp_path / "team", [{**uses, "path": f"alice/x{n:04}"} for n in range(2 * MAX_GRANTS)])
    assert [row.seq for row in list_newest(workspace.journal, "alice")] == [made.seq]
    assert is_approved(workspace, ask(workspace, "1"))


def test_people_are_asked_if_there_are_too_many_newer_grants(workspace: Workspace, tmp_path: Path) -> None:
    made = grant(workspace)
    content = workspace.journal.content(made.seq)
    forged: dict[str, object] = {
        "actor": "human:eve",
        "tool": GRANT,
        "zone": "grant",
        "content": content,
        "version": 1,
    }
    detail = json.dumps({"request": made.seq})
    rows = [{**forged, "path": f"alice/{n:04}", "detail": detail} for n in range(2 * MAX_GRANTS)]
    plant_many(tmp_path / "team", rows[: MAX_GRANTS - 1])
    assert is_approved(workspace, ask(workspace, "1"))
    plant_many(tmp_path / "team", rows[MAX_GRANTS - 1 :])
    assert len([*list_newest(workspace.journal, "alice")]) == MAX_GRANTS
    assert end_of(workspace, ask(workspace, "2")) is None
    # Another agent's grants are not affected.
    assert [*list_newest(workspace.journal, "bob")] == []


def test_a_revoked_grant_answers_nothing(workspace: Workspace) -> None:
    made = grant(workspace)
    first = ask(workspace, "1")
    workspace.grants.revoke(EVE_DECIDES, made.seq)
    assert is_approved(workspace, first)
    assert end_of(workspace, ask(workspace, "2")) is None
    with pytest.raises(GrantEnded):
        workspace.grants.revoke(EVE_DECIDES, made.seq)
    with pytest.raises(GrantNotFound):
        workspace.grants.revoke(EVE_DECIDES, first.seq)


def test_a_request_that_waits_is_not_answered_by_a_later_grant(workspace: Workspace) -> None:
    waiting = ask(workspace, "waits")
    grant(workspace)
    assert workspace.requests.ask(CallContext("alice"), waiting.path, request()).seq == waiting.seq
    assert end_of(workspace, waiting) is None


def test_a_request_of_a_cancelled_session_is_not_answered_by_a_grant(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that asked was interrupted before the grant answered, and the session was cancelled."""
    begun = Write("alice", "begin_session", "session", "alice/s1", "{}", detail={"status": "idle"})
    workspace.journal.append([begun])
    made = grant(workspace)

    def interrupt(self: Grants, asked: Row, request: Request) -> None:
        raise JournalError(reason="the disk is gone")

    monkeypatch.setattr(Grants, "use", interrupt)
    with pytest.raises(JournalError):
        ask(workspace, "1")
    monkeypatch.undo()
    workspace.session_zone.control(EVE_DECIDES.with_tool(CANCEL), "alice", None, "")
    assert end_of(workspace, ask(workspace, "1")) is None
    head = workspace.journal.head("grant", made.path)
    assert head is not None
    assert head.version == 1, "no use was taken"
    assert is_approved(workspace, ask(workspace, "2"))


@pytest.mark.parametrize(
    ("scope", "seconds", "words"), [("place", None, None), ("session", None, 0), ("session", None, 3)]
)
def test_a_wider_grant_is_refused(
    workspace: Workspace, scope: Scope, seconds: int | None, words: int | None
) -> None:
    with pytest.raises(GrantRefused):
        grant(workspace, scope=scope, seconds=seconds, words=words)


def test_a_call_that_is_not_understood_cannot_be_granted(workspace: Workspace) -> None:
    asked = ask(workspace, "1", "npm test && make")
    with pytest.raises(GrantRefused):
        workspace.grants.make(EVE_DECIDES, asked.seq, GrantChoice("session", 1))
    with pytest.raises(RequestNotFound):
        workspace.grants.make(EVE_DECIDES, asked.seq + 100, GrantChoice("session", 1))


def test_agents_have_no_tool_to_grant(workspace: Workspace) -> None:
    asked = ask(workspace, "1")
    arguments: dict[str, Json] = {"request": asked.seq, "scope": "session", "uses": 1}
    refused = workspace.tools("alice").dispatch_tool_call("grant_calls", arguments)
    assert refused["error"] == "permission_denied"
    made = workspace.tools_for_human("eve").dispatch_tool_call("grant_calls", arguments)
    assert made["covers"] == (
        "alice may call Bash with exactly the command npm test, in the folder /app, in the session alice/s1"
    )
    revoked = workspace.tools_for_human("eve").dispatch_tool_call("revoke_grant", {"grant": made["grant"]})
    assert revoked["success"]


def test_threads_never_use_the_last_use_twice(workspace: Workspace) -> None:
    made = grant(workspace, uses=5)
    with ThreadPoolExecutor(8) as threads:
        asked = list(threads.map(lambda number: ask(workspace, f"t{number}"), range(16)))
    assert sum(is_approved(workspace, each) for each in asked) == 5
    uses = workspace.journal.history("grant", made.path, after_version=1)
    assert len({row.detail["request"] for row in uses}) == 5
    model = read_model(workspace.journal, workspace.journal.last_seq())
    assert {need.kind for need in model.needs} == {"request"}


def test_processes_never_use_the_last_use_twice(workspace: Workspace) -> None:
    made = grant(workspace, uses=5)
    tests = str(Path(__file__).parent.parent)
    helpers = [
        subprocess.Popen(
            [sys.executable, "-c", HELPER, workspace.root, name, "6"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tests,
            env={"PYTHONPATH": tests, "PATH": "/usr/bin:/bin"},
        )
        for name in ("a", "b")
    ]
    for each in helpers:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in helpers:
        assert each.communicate("go\n", timeout=60)[0] == ""
        assert each.returncode == 0
    paths = [f"alice/s1/{name}{number}" for name in ("a", "b") for number in range(6)]
    asked = [workspace.journal.version("request", path, 1) for path in paths]
    assert sum(is_approved(workspace, each) for each in asked if each is not None) == 5
    assert workspace.journal.head("grant", made.path).version == 6  # type: ignore[union-attr]


def test_a_use_of_an_interrupted_process_is_not_lost(workspace: Workspace) -> None:
    made = grant(workspace, uses=1)
    # The process ended after it took the use, and before it answered.
    asked = workspace.journal.append(
        [workspace.requests._draft(CallContext("alice"), "alice/s1/1", request())]
    )[0].row
    used = workspace.grants.use(asked, request())
    assert used is not None
    ask(workspace, "1")
    assert is_approved(workspace, asked)
    assert workspace.journal.head("grant", made.path) == used


@pytest.mark.parametrize("is_revoked", [False, True])
def test_a_use_of_an_interrupted_process_ends_with_its_grant(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, is_revoked: bool
) -> None:
    clock = JumpingClock(monkeypatch)
    made = grant(workspace, scope="place", seconds=3600)
    asked = workspace.journal.append(
        [workspace.requests._draft(CallContext("alice"), "alice/s1/1", request())]
    )[0].row
    assert workspace.grants.use(asked, request()) is not None
    if is_revoked:
        workspace.grants.revoke(EVE_DECIDES, made.seq)
    else:
        clock.ahead += 2 * HOUR
    ask(workspace, "1")
    assert end_of(workspace, asked) is None


# A closed workspace.


def test_an_unsigned_grant_is_refused_and_a_signed_one_counts(team: Team) -> None:
    with pytest.raises(SignatureRequired):
        grant(team.workspace, "1")
    team.sign_as(EVE)
    grant(team.workspace, "2")
    team.sign_as(None)
    assert is_approved(team.workspace, ask(team.workspace, "3"))
    assert not [each for each in needs_of(team) if each == "forged"]


def needs_of(team: Team) -> list[str]:
    model = read_model(team.workspace.journal, team.workspace.journal.last_seq())
    return [need.kind for need in model.needs]


def test_verify_finds_nothing_wrong_with_grants_and_their_uses(team: Team) -> None:
    team.sign_as(EVE)
    made = grant(team.workspace)
    ask(team.workspace, "1")
    team.workspace.grants.revoke(EVE_DECIDES, made.seq)
    team.sign_as(DANA)
    team.workspace.people.revoke("human:dana", "eve")
    assert team.workspace.verify() == []


@pytest.mark.postgres
@pytest.mark.parametrize("is_closed", [False, True])
def test_an_agents_login_on_a_server_uses_a_grant(
    new_database: Callable[[], str], tmp_path: Path, is_closed: bool
) -> None:
    agents, url = [Agent("alice"), Agent("bob")], new_database()
    with (
        Workspace.open(url, agents, checkout=tmp_path / "team") as workspace,
        closing(DatabaseMembers(url)) as members,
    ):
        if is_closed:
            close(workspace)
            workspace.signing.signer = EVE
        grant(workspace, uses=1)
        address = members.add("alice", "agent")
        with Workspace.open(address, checkout=tmp_path / "alice") as of_alice:
            asked = [ask(of_alice, name) for name in ("1", "2")]
            assert [is_approved(of_alice, each) for each in asked] == [True, False]
        assert [is_approved(workspace, each) for each in asked] == [True, False]
        model = read_model(workspace.journal, workspace.journal.last_seq())
        assert {need.kind for need in model.needs} == {"request"}


@pytest.mark.parametrize("signer", [BOT, STRANGER])
def test_a_viewer_and_a_stranger_grant_nothing(team: Team, signer: object) -> None:
    team.workspace.signing.signer = signer  # type: ignore[assignment]
    name = "viktor" if signer is BOT else "mallory"
    asked = ask(team.workspace, "1")
    with pytest.raises(MayNotDecide):
        team.workspace.grants.make(CallContext(f"human:{name}"), asked.seq, GrantChoice("session", 1))


def test_a_person_with_limits_grants_only_within_them(team: Team) -> None:
    team.sign_as(DANA)
    limited = person("bot", "supervisor", STRANGER)._replace(tools=("collab_*",))
    team.workspace.people.add("human:dana", limited)
    team.sign_as(STRANGER)
    asked = ask(team.workspace, "1")
    with pytest.raises(MayNotDecide, match="limits"):
        team.workspace.grants.make(CallContext("human:bot"), asked.seq, GrantChoice("session", 1))


def test_the_grants_of_a_revoked_person_end(team: Team) -> None:
    team.sign_as(EVE)
    grant(team.workspace)
    team.sign_as(DANA)
    team.workspace.people.revoke("human:dana", "eve")
    assert end_of(team.workspace, ask(team.workspace, "1")) is None
    assert team.workspace.grants.list_active() == []


def test_an_unsigned_grant_ends_when_the_workspace_is_closed(workspace: Workspace) -> None:
    grant(workspace)
    assert is_approved(workspace, ask(workspace, "1"))
    workspace.signing.signer = DANA
    workspace.people.add("human:dana", person("dana", "owner", DANA))
    assert end_of(workspace, ask(workspace, "2")) is None


@pytest.mark.parametrize("actor", ["human:eve", "alice", "system", "outside"])
def test_a_planted_grant_grants_nothing(team: Team, actor: str) -> None:
    team.sign_as(EVE)
    made = grant(team.workspace, uses=1)
    assert is_approved(team.workspace, ask(team.workspace, "1"))
    content = team.workspace.journal.content(made.seq)
    plant(
        *(team.root, actor, "grant_calls", "grant", "alice/planted"),
        content=content,
        detail={"request": made.detail["request"]},
        version=1,
        base=0,
    )
    assert end_of(team.workspace, ask(team.workspace, "2")) is None
    assert "forged" in needs_of(team)


def test_a_replayed_grant_grants_nothing(team: Team) -> None:
    team.sign_as(EVE)
    made = grant(team.workspace, uses=1)
    assert is_approved(team.workspace, ask(team.workspace, "1"))
    for path, version, base in (("alice/again", 1, 0), (made.path, 3, 0)):
        plant(
            *(team.root, "human:eve", "grant_calls", "grant", path),
            content=team.workspace.journal.content(made.seq),
            detail=made.detail,
            message=made.message,
            version=version,
            base=base,
        )
    assert {SIGNED, SIGNATURE} <= made.detail.keys()
    assert end_of(team.workspace, ask(team.workspace, "2")) is None


def test_a_grant_from_another_request_or_with_other_limits_does_not_count(team: Team) -> None:
    team.sign_as(EVE)
    made = grant(team.workspace, uses=1)
    content = json.loads(team.workspace.journal.content(made.seq) or "")
    plant(
        *(team.root, "human:eve", "grant_calls", "grant", "alice/more"),
        content=json.dumps({**content, "uses": 100}),
        detail=made.detail,
        message=made.message,
        version=1,
        base=0,
    )
    assert is_approved(team.workspace, ask(team.workspace, "1"))
    assert end_of(team.workspace, ask(team.workspace, "2")) is None


def plant_answer(team: Team, asked: Row, number: int) -> None:
    """Answer ``asked`` as Watchroom, with a grant's use in row ``number``."""
    plant(
        *(team.root, "system", ANSWER, "request", asked.path),
        content=dump_answer(decide_all(request(), True)),
        detail={"request": asked.seq, "outcome": "approved", "grant": number},
        version=2,
        base=1,
    )


def test_a_planted_answer_approves_nothing(team: Team) -> None:
    team.sign_as(EVE)
    made = grant(team.workspace, uses=1)
    first = ask(team.workspace, "1")
    ended = end_of(team.workspace, first)
    assert ended is not None
    for name, number in (("2", 0), ("3", made.seq), ("4", int(str(ended.detail["grant"]))), ("5", first.seq)):
        asked = ask(team.workspace, name)
        plant_answer(team, asked, number)
        assert end_of(team.workspace, asked) is None
    assert "forged" in needs_of(team)


@pytest.mark.parametrize("case", ["used up", "revoked", "another command", "earlier request"])
def test_a_planted_use_approves_nothing(team: Team, case: str) -> None:
    early = ask(team.workspace, "early")
    team.sign_as(EVE)
    made = grant(team.workspace, uses=1)
    if case == "used up":
        ask(team.workspace, "1")
    elif case == "revoked":
        team.workspace.grants.revoke(EVE_DECIDES, made.seq)
    asked = ask(team.workspace, "2", "make" if case == "another command" else "npm test")
    asked = early if case == "earlier request" else asked
    newest = team.workspace.journal.head("grant", made.path)
    assert newest is not None
    use = plant(
        *(team.root, "system", USE_GRANT, "grant", made.path),
        content="",
        detail={"request": asked.seq, "before": newest.seq},
        version=(newest.version or 0) + 1,
        base=newest.version,
    )
    if end_of(team.workspace, asked) is None:
        plant_answer(team, asked, use)
    assert end_of(team.workspace, asked) is None


def test_a_revocation_needs_no_key_but_a_person(team: Team) -> None:
    team.sign_as(EVE)
    made = grant(team.workspace, uses=9)
    team.sign_as(None)
    plant(
        *(team.root, "alice", REVOKE_GRANT, "grant", "alice/other"),
        detail={"row": made.seq},
        version=2,
        base=1,
    )
    assert is_approved(team.workspace, ask(team.workspace, "1"))
    team.workspace.grants.revoke(EVE_DECIDES, made.seq)
    assert end_of(team.workspace, ask(team.workspace, "2")) is None
