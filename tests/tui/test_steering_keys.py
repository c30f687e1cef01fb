"""The keys that steer an agent, for each state of the agent: the footer offers exactly the keys that work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from platform import node
from typing import Final, NamedTuple

import pytest
from tui.driver import WIDE, User, dashboard
from tui.other_process import OtherProcess
from watchroom import Workspace
from watchroom.agents.clients.events import (
    ClientEvent,
    ClientInfo,
    PromptSubmitted,
    SessionEnded,
    TurnEnded,
    TurnFailed,
    TurnLimited,
)
from watchroom.agents.clients.session import ClientSession
from watchroom.features.sessions.client_process import BOOT, MACHINE, NAMESPACE, PID, STARTED
from watchroom.features.sessions.limits import RateLimit
from watchroom.model import CANCEL, MESSAGE, PAUSE, PRESENCE, RESUME, Json, SessionStatus, Write
from watchroom.texts import LANGUAGES, Language, catalogue
from watchroom_tui.widgets.frame import Footer

pytestmark = pytest.mark.slow(10)
HOUR: Final = 3600 * 10**9
KEYS: Final = ("m", "p", "a", "X")
TOOLS: Final = {"m": MESSAGE, "p": PAUSE, "a": RESUME, "X": CANCEL}


def run_client(workspace: Workspace, *events: ClientEvent) -> None:
    """Record ``events`` of a client of alice, which runs in this process."""
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    for event in (PromptSubmitted("Go"), *events):
        session.record(event)


def limit(workspace: Workspace, *, is_known: bool = True) -> TurnLimited:
    resets = workspace.journal.now() + HOUR if is_known else None
    return TurnLimited(RateLimit(resets, "limit reached"))


def record_step(workspace: Workspace, lease: str, status: SessionStatus, **about: Json) -> None:
    """Record a session of alice in the process with ``lease``. ``about``: what the row says about its
    client."""
    detail: dict[str, Json] = {"status": status, PRESENCE: lease, **about}
    if status == "parked":
        detail["parked"] = {"since": 1, "resets": workspace.journal.now() + HOUR, "text": "limit reached"}
    step = Write("alice", "begin_session", "session", "alice/1", "{}", expected=0, detail=detail)
    workspace.journal.append([step])


def read_running(workspace: Workspace, pid: int) -> dict[str, Json]:
    """Return how rows record the process ``pid``."""
    platform = workspace.platform
    return {
        PID: pid,
        STARTED: platform.process_start(pid),
        MACHINE: node(),
        BOOT: platform.boot_id(),
        NAMESPACE: platform.process_scope(pid).namespace,
    }


def run_elsewhere(status: SessionStatus, *, is_killed: bool) -> Callable[[Workspace], None]:
    """Return a function that leaves a session in ``status``, whose process was killed or has ended
    normally."""

    def leave(workspace: Workspace) -> None:
        process = OtherProcess(workspace.root)
        record_step(workspace, process.lease, status)
        if is_killed:
            process.kill()
        process.end()

    return leave


class State(NamedTuple):
    """A state of alice: how it comes about, its mark, and the keys that work with their labels."""

    make: Callable[[Workspace], object]
    mark: str
    keys: str


STATES: Final[dict[str, State]] = {
    "no session": State(lambda _: None, "○", ""),
    "working": State(run_client, "●", "m p:pause X"),
    "waiting": State(lambda w: record_step(w, "", "waiting_for_human_input"), "◐", "m p:pause X"),
    "paused": State(lambda w: record_step(w, "", "paused"), "⏸", "m p:resume X"),
    "parked": State(lambda w: run_client(w, limit(w)), "⧖", "m p:resume a X"),
    "parked, reset unknown": State(lambda w: run_client(w, limit(w, is_known=False)), "⧖", "m p:resume X"),
    "idle": State(lambda w: run_client(w, TurnEnded()), "○", "m p:pause X"),
    "failed": State(lambda w: run_client(w, TurnFailed("broken")), "✖", "m p:resume X"),
    "done": State(lambda w: run_client(w, SessionEnded()), "✓", "m"),
    "cancelled": State(lambda w: run_client(w, SessionEnded("cancelled")), "○", "m"),
    "killed at work": State(run_elsewhere("running", is_killed=True), "◌", "m X"),
    "killed while waiting": State(run_elsewhere("waiting_for_human_input", is_killed=True), "◌", "m X"),
    "killed while paused": State(run_elsewhere("paused", is_killed=True), "◌", "m X"),
    "killed while parked": State(run_elsewhere("parked", is_killed=True), "◌", "m X"),
    "killed while idle": State(run_elsewhere("idle", is_killed=True), "◌", "m X"),
    "stopped at work": State(run_elsewhere("running", is_killed=False), "○", "m X"),
    "stopped while paused": State(run_elsewhere("paused", is_killed=False), "○", "m X"),
    "stopped while parked": State(run_elsewhere("parked", is_killed=False), "○", "m X"),
}
LABELS: Final = {
    "m": "action.message.label",
    "p:pause": "action.pause.label",
    "p:resume": "footer.resume",
    "a": "action.resume_at_reset.label",
    "X": "action.end_session.label",
}
AT_PARKED: Final = ("parked", "parked, reset unknown", "killed while parked", "stopped while parked")


def footer(user: User) -> dict[str, str]:
    """The label of each offered key that steers an agent."""
    entries = user.app.screen.query_one(Footer)._screen_entries()
    return {each.key: each.label for each in entries if each.key in KEYS}


def offered(keys: str, language: Language) -> dict[str, str]:
    texts = catalogue(language, "watchroom_tui.texts")
    return {each[0]: texts(LABELS[each]) for each in keys.split()}


async def shows_state(user: User, mark: str) -> None:
    """Wait until the list shows alice with ``mark``, and move the cursor to alice."""
    agents = user.list("agents")
    agents.move_to("alice")
    await user.sees(f"{mark} alice")
    assert agents.copy_text(agents.item) == "alice"
    await user.settle()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", STATES)
async def test_the_footer_offers_exactly_what_works(
    workspace: Workspace, name: str, language: Language
) -> None:
    state = STATES[name]
    state.make(workspace)
    expected = offered(state.keys, language)
    async with dashboard(workspace, size=WIDE, language=language) as user:
        await user.press("tab")
        assert user.pane == "agents"
        await shows_state(user, state.mark)
        # In the list of the overview, `a` approves needs.
        assert footer(user) == {key: label for key, label in expected.items() if key != "a"}
        await user.goes_to("2", "agents")
        await shows_state(user, state.mark)
        assert footer(user) == expected


@pytest.mark.parametrize("name", AT_PARKED)
async def test_the_need_of_a_parked_agent_offers_the_same(workspace: Workspace, name: str) -> None:
    state = STATES[name]
    state.make(workspace)
    async with dashboard(workspace, size=WIDE) as user:
        await user.until(lambda: user.list("needs").items, "the need")
        await user.settle()
        assert (user.pane, user.app.needs[0].kind) == ("needs", "parked")
        assert footer(user) == offered(state.keys, "en")


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("screen", ["overview", "agents"])
async def test_an_offered_key_works_and_another_says_why_not(
    workspace: Workspace, name: str, screen: str
) -> None:
    state = STATES[name]
    state.make(workspace)
    async with dashboard(workspace, size=WIDE) as user:
        if screen == "agents":
            await user.goes_to("2", "agents")
        else:
            await user.press("tab")
        await shows_state(user, state.mark)
        works = footer(user)
        for key in KEYS if screen == "agents" else "mpX":
            before = workspace.journal.last_seq()
            await user.press(key)
            if key in works:
                await acts(user, workspace, key, before)
            else:
                await user.is_told("alice")
                assert (user.place, workspace.journal.last_seq()) == (screen, before)
            if key in works and key != "m":
                # The first instruction changes the state.
                return


async def acts(user: User, workspace: Workspace, key: str, before: int) -> None:
    """Check that ``key`` opens its dialog, or that its instruction is in the journal."""
    if key == "m":
        await user.until(lambda: user.place == "TextInputDialog", "the dialog")
        await user.press("escape")
        return
    if key == "X":
        await user.until(lambda: user.place == "ConfirmDialog", "the dialog")
        await user.press("enter")
    tools = {TOOLS[key], RESUME} if key == "p" else {TOOLS[key]}
    await user.until(
        lambda: any(row.tool in tools for row in workspace.journal.rows(before)), f"the instruction of {key}"
    )


@pytest.fixture
def client() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process


@pytest.mark.parametrize(("status", "mark"), [("parked", "⧖"), ("running", "●")])
async def test_a_killed_attached_client_is_started_again_by_a_person(
    workspace: Workspace, client: subprocess.Popen[bytes], status: SessionStatus, mark: str
) -> None:
    """No command takes over the session of such a client."""
    hook = OtherProcess(workspace.root)
    about = {"client": "claude", "attachment": "attached", "cwd": "/work"}
    record_step(workspace, hook.lease, status, **read_running(workspace, client.pid), **about)
    hook.end()
    async with dashboard(workspace, size=WIDE) as user:
        await user.sees(f"{mark} alice")
        client.kill()
        client.wait()
        await user.sees("◌ alice", "; start claude again")
        assert not user.shows("watchroom resume")
        await user.goes_to("2", "agents")
        await user.press("p")
        await user.is_told("It continues when resumed by starting claude again in /work.")
