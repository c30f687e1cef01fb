"""Rows that would change protected state, and how to see whether they did: by what acts, and by the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from calls import ok
from people.conftest import CALL, EVE, STRANGER, person
from routines.plans import make_plan
from watchroom import Workspace
from watchroom.errors import ConflictSettled
from watchroom.features.config.rows import SETTINGS_PATH, SETTINGS_ZONE
from watchroom.features.overview.model import Model
from watchroom.features.overview.snapshots import read_model
from watchroom.features.people.rules import STOPPED_PATH
from watchroom.features.policy.grants import Grant, GrantChoice, GrantedCall, dump_grant
from watchroom.features.requests.rows import PendingCall, Request, decide_all, dump_answer, dump_request
from watchroom.kernel.call_context import CallContext
from watchroom.model import MESSAGE, PAUSE, RESUME, Draft, Json, Note, Row, Write
from watchroom.validation import sha256

REQUEST: Final = Request("approve", calls=(CALL,))
LAX: Final = 'allowed_hosts = ["*.example.org"]\n'
TASK: Final = "t-1"


class Attempt(NamedTuple):
    """A row that ``draft`` makes, given an actor and a tool, and whether its effect ``happened``: as what acts
    in the workspace sees it, and as the model shows it (None: the one of them does not show it)."""

    draft: Callable[[str, str], Draft]
    acts: Callable[[], bool] | None
    shows: Callable[[Model], bool] | None

    def has_happened(self, workspace: Workspace) -> bool:
        """Whether the effect took place. What acts and what is shown have to agree."""
        seen = set()
        if self.acts is not None:
            seen.add(self.acts())
        if self.shows is not None:
            seen.add(self.shows(read_model(workspace.journal, workspace.journal.last_seq())))
        assert len(seen) == 1, "what acts and what is shown disagree"
        return seen.pop()


def _ask(workspace: Workspace) -> int:
    return workspace.requests.ask(CallContext("alice"), "alice/1/1", REQUEST).seq


def _answer(workspace: Workspace) -> Attempt:
    number = _ask(workspace)
    text = dump_answer(decide_all(REQUEST, True))

    def draft(actor: str, tool: str) -> Draft:
        detail: dict[str, Json] = {"request": number, "outcome": "approved"}
        return Write(actor, tool, "request", "alice/1/1", text, expected=1, detail=detail)

    def acts() -> bool:
        ended = workspace.requests.ended("alice/1/1", REQUEST)
        return ended is not None and ended.answer is not None and bool(ended.answer.decisions)

    def shows(model: Model) -> bool:
        return any(each.is_answered for each in model.ended_requests)

    return Attempt(draft, acts, shows)


def _withdraw(workspace: Workspace) -> Attempt:
    number = _ask(workspace)

    def draft(actor: str, tool: str) -> Draft:
        detail: dict[str, Json] = {"request": number, "outcome": "withdrawn"}
        return Write(actor, tool, "request", "alice/1/1", "", expected=1, detail=detail)

    return Attempt(
        draft,
        lambda: workspace.requests.ended("alice/1/1", REQUEST) is not None,
        lambda model: not model.requests,
    )


def _plant(workspace: Workspace) -> Attempt:
    return Attempt(
        lambda actor, tool: Write(actor, tool, "request", "alice/1/1", dump_request(REQUEST), expected=0),
        None,
        lambda model: bool(model.requests),
    )


def _shown(workspace: Workspace, name: str) -> int:
    """The number of a request of alice's whose call can be granted."""
    call = PendingCall("c1", "run_command", '{"command": "make"}')
    request = Request("approve", calls=(call,))
    return workspace.requests.ask(CallContext("alice"), f"alice/s1/{name}", request).seq


def _granted(workspace: Workspace) -> Row:
    """The row of a grant of eve's."""
    number = _shown(workspace, "1")
    workspace.signing.signer = EVE
    row = workspace.grants.make(CallContext("human:eve"), number, GrantChoice("session", 1))
    workspace.signing.signer = None
    return row


def _grant(workspace: Workspace) -> Attempt:
    number = _shown(workspace, "1")
    call = GrantedCall("run_command", ("make",))
    text = dump_grant(Grant("alice", call, "alice/s1", False, None, 1, number))
    return Attempt(
        lambda actor, tool: Write(
            actor, tool, "grant", "alice/1", text, expected=0, detail={"request": number}
        ),
        lambda: bool(workspace.grants.list_active()),
        None,
    )


def _revoke(workspace: Workspace) -> Attempt:
    row = _granted(workspace)
    return Attempt(
        lambda actor, tool: Write(actor, tool, "grant", row.path, None, expected=1),
        lambda: _is_revoked(workspace, row),
        None,
    )


def _is_revoked(workspace: Workspace, row: Row) -> bool:
    """Whether the grant in ``row`` answers no further request. A forged end of it also ends it."""
    head = workspace.journal.head("grant", row.path)
    return head is not None and head.deleted and workspace.people.counts(head)


def _use(workspace: Workspace) -> Attempt:
    row = _granted(workspace)
    request = Request("approve", calls=(PendingCall("c1", "run_command", '{"command": "make "}'),))
    ((asked, _),) = workspace.journal.append(
        [Write("alice", "ask_person", "request", "alice/s1/2", dump_request(request), expected=0)]
    )

    def acts() -> bool:
        head = workspace.journal.head("grant", row.path)
        return head is not None and head.seq != row.seq and workspace.people.counts(head)

    return Attempt(
        lambda actor, tool: Write(
            *(actor, tool, "grant", row.path, ""),
            expected=1,
            detail={"request": asked.seq, "before": row.seq},
        ),
        acts,
        None,
    )


def _settings(workspace: Workspace) -> Attempt:
    version, _ = workspace.registry.settings()
    return Attempt(
        lambda actor, tool: Write(actor, tool, SETTINGS_ZONE, SETTINGS_PATH, LAX, expected=version),
        lambda: list(workspace.config.allowed_hosts) == ["*.example.org"],
        None,
    )


def _enrol(workspace: Workspace) -> Attempt:
    content = person("mallory", "owner", STRANGER).dump()
    return Attempt(
        lambda actor, tool: Write(actor, tool, "person", "mallory", content, expected=0),
        lambda: workspace.people.current().find("human:mallory") is not None,
        lambda model: model.people.find("human:mallory") is not None,
    )


def _make_token(workspace: Workspace) -> Attempt:
    secret = "s" * 40
    content = f'{{"sha256": "{sha256(secret.encode())}", "expires": null}}'
    return Attempt(
        lambda actor, tool: Write(actor, tool, "token", "alice/ffffffffffff", content, expected=0),
        lambda: workspace.access.authenticate(f"wr1.alice.ffffffffffff.{secret}") == "alice",
        None,
    )


def _conflict(workspace: Workspace) -> int:
    """The number of a conflict of bob's on ``a``."""
    ok(workspace.tools("alice"), "collab_write", filepath="a", content="1\n", message="m", expected_version=0)
    call: dict[str, Json] = {"filepath": "a", "content": "2\n", "message": "m", "expected_version": 0}
    assert workspace.tools("bob").dispatch_tool_call("collab_write", call)["error"] == "version_conflict"
    (conflict,) = read_model(workspace.journal, workspace.journal.last_seq()).conflicts
    return conflict.id


def _is_settled(workspace: Workspace, number: int) -> bool:
    try:
        workspace.conflicts.draft_dismissal(CallContext("human:eve"), number, "")
    except ConflictSettled:
        return True
    return False


def _dismiss(workspace: Workspace) -> Attempt:
    number = _conflict(workspace)
    return Attempt(
        lambda actor, tool: Note(actor, tool, "collab", "a", detail={"conflict": number}),
        lambda: _is_settled(workspace, number),
        lambda model: not model.conflicts,
    )


def _resolve(workspace: Workspace) -> Attempt:
    number = _conflict(workspace)
    return Attempt(
        lambda actor, tool: Write(
            actor, tool, "collab", "a", "3\n", expected=1, detail={"resolves": [number]}
        ),
        lambda: _is_settled(workspace, number),
        lambda model: not model.conflicts,
    )


def _overwrite(workspace: Workspace) -> Attempt:
    number = _conflict(workspace)
    return Attempt(
        lambda actor, tool: Write(actor, tool, "collab", "a", "3\n", expected=1),
        lambda: _is_settled(workspace, number),
        lambda model: not model.conflicts,
    )


def _stopped(workspace: Workspace) -> None:
    workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    ok(workspace.tools_for_human("eve"), "stop_agents", agents=["alice"])


def _resume(workspace: Workspace) -> Attempt:
    _stopped(workspace)
    since = workspace.journal.last_seq()

    def acts() -> bool:
        controls = workspace.session_zone.controls("alice/1", since)
        went_on = any(each.row.tool == RESUME for each in controls)
        assert went_on == (not workspace.stops.stopped())
        return went_on

    return Attempt(
        lambda actor, tool: Note(actor, tool, "session", "alice"), acts, lambda model: not model.stopped
    )


def _release(workspace: Workspace) -> Attempt:
    _stopped(workspace)
    return Attempt(
        lambda actor, tool: Write(
            actor, tool, "workspace", STOPPED_PATH, "", expected=1, detail={"agents": {}}
        ),
        lambda: not workspace.stops.stopped(),
        lambda model: not model.stopped,
    )


def _stop(workspace: Workspace) -> Attempt:
    return Attempt(
        lambda actor, tool: Write(
            actor, tool, "workspace", STOPPED_PATH, "", expected=0, detail={"agents": {"alice": 1}}
        ),
        lambda: [*workspace.stops.stopped()] == ["alice"],
        lambda model: [*model.stopped] == ["alice"],
    )


def _pause(workspace: Workspace) -> Attempt:
    workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    since = workspace.journal.last_seq()
    return Attempt(
        lambda actor, tool: Note(actor, tool, "session", "alice"),
        lambda: any(each.row.tool == PAUSE for each in workspace.session_zone.controls("alice/1", since)),
        None,
    )


def _say(workspace: Workspace) -> Attempt:
    workspace.journal.append([Write("alice", "user", "session", "alice/1", "{}")])
    since = workspace.journal.last_seq()

    def acts() -> bool:
        controls = workspace.session_zone.controls("alice/1", since)
        return [each.text for each in controls if each.row.tool == MESSAGE] == ["Go on"]

    return Attempt(
        lambda actor, tool: Note(actor, tool, "session", "alice", message="Go on", content="Go on"),
        acts,
        None,
    )


def _look(workspace: Workspace) -> Attempt:
    ok(workspace.tools("alice"), "collab_write", filepath="a", content="1\n", message="m", expected_version=0)
    ok(workspace.tools("bob"), "collab_write", filepath="a", content="2\n", message="m", expected_version=-1)
    (need,) = read_model(workspace.journal, workspace.journal.last_seq()).needs
    detail = {"need": need.kind, "row": need.row.seq, "actor": need.row.actor}
    return Attempt(
        lambda actor, tool: Note(actor, tool, "collab", "a", base=2, detail=detail),
        None,
        lambda model: not any(each.kind == "unchecked" for each in model.needs),
    )


def _end_task(workspace: Workspace) -> Attempt:
    content = '{"requirement": "x", "workspacePath": ""}'
    workspace.journal.append([Write("human:eve", "submit_requirement", "task", TASK, content)])

    def shows(model: Model) -> bool:
        return [each.status for each in model.tasks] == ["done"]

    return Attempt(
        lambda actor, tool: Write(actor, tool, "task", TASK, "done", expected=1, detail={"status": "done"}),
        lambda: workspace.tasks.find(TASK).status == "done",
        shows,
    )


def _routine(workspace: Workspace) -> Attempt:
    plan = make_plan(workspace)
    return Attempt(
        lambda actor, tool: Write(
            actor, tool, "workspace", "routine/nightly", "Go.", expected=0, detail=plan.detail
        ),
        lambda: bool(workspace.routines.list()),
        None,
    )


def _add_routine(workspace: Workspace) -> None:
    signer = workspace.signing.signer
    workspace.signing.signer = EVE if workspace.people.current().is_closed else None
    workspace.routines.add(CallContext("human:eve"), "nightly", "Go.", make_plan(workspace))
    workspace.signing.signer = signer


def _run_routine(workspace: Workspace) -> Attempt:
    _add_routine(workspace)
    return Attempt(
        lambda actor, tool: Write(actor, tool, "workspace", "routine/nightly", "", expected=1),
        lambda: workspace.routines.find("nightly").asked > 0,
        None,
    )


def _stop_routine(workspace: Workspace) -> Attempt:
    _add_routine(workspace)
    return Attempt(
        lambda actor, tool: Write(actor, tool, "workspace", "routine/nightly", "", expected=1),
        lambda: workspace.routines.find("nightly").stopped is not None,
        None,
    )


ATTEMPTS: Final[dict[str, Callable[[Workspace], Attempt]]] = {
    "answer a request": _answer,
    "withdraw a request": _withdraw,
    "ask a request": _plant,
    "grant calls": _grant,
    "revoke a grant": _revoke,
    "use a grant": _use,
    "sign settings": _settings,
    "enrol a person": _enrol,
    "make a token": _make_token,
    "dismiss a conflict": _dismiss,
    "resolve a conflict": _resolve,
    "settle a conflict by a new version": _overwrite,
    "resume an agent": _resume,
    "release stopped agents": _release,
    "stop agents": _stop,
    "pause an agent": _pause,
    "say something to an agent": _say,
    "mark a need as seen": _look,
    "add a routine": _routine,
    "run a routine": _run_routine,
    "stop a routine": _stop_routine,
    "end a task as done": _end_task,
}
