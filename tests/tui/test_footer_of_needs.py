"""The footer names what each key does for the need under the cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tui.driver import WIDE, User, dashboard
from tui.team import stale_write, write
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, TurnFailed, TurnLimited
from watchroom.agents.clients.session import ClientSession
from watchroom.features.requests.rows import Option, PendingCall, Request
from watchroom.features.sessions.limits import RateLimit
from watchroom.kernel.call_context import CallContext
from watchroom_tui.widgets.frame import Footer

pytestmark = pytest.mark.slow(8)


def park(workspace: Workspace, *, is_known: bool) -> None:
    resets = workspace.journal.now() + 3600 * 10**9 if is_known else None
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    session.record(PromptSubmitted("Go"))
    session.record(TurnLimited(RateLimit(resets, "limit reached")))


def fail(workspace: Workspace) -> None:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    session.record(PromptSubmitted("Go"))
    session.record(TurnFailed("broken"))


def ask(request: Request) -> Callable[[Workspace], object]:
    return lambda workspace: workspace.requests.ask(CallContext("alice"), "alice/mcp/1", request)


def collide(workspace: Workspace) -> None:
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    write(alice, "one\n", 0)
    write(alice, "two\n", 1)
    stale_write(bob, "late\n", 1)


CALL: Final = PendingCall("c1", "shell", '{"command": "ls"}')
NEEDS: Final[dict[str, tuple[Callable[[Workspace], object], dict[str, str]]]] = {
    "approval": (
        ask(Request("approve", "", calls=(CALL,))),
        {"a": "approve", "r": "reject", "enter": "open"},
    ),
    "question": (ask(Request("prompt", "Which?")), {"r": "reject", "enter": "reply"}),
    "choice": (
        ask(Request("select", "Which?", options=(Option("x", "X"), Option("y", "Y")))),
        {"r": "reject", "enter": "choose"},
    ),
    "conflict": (collide, {"enter": "merge"}),
    "parked": (
        lambda workspace: park(workspace, is_known=True),
        {"a": "resume at reset", "p": "resume", "m": "message", "X": "end", "enter": "open"},
    ),
    "parked, reset unknown": (
        lambda workspace: park(workspace, is_known=False),
        {"p": "resume", "m": "message", "X": "end", "enter": "open"},
    ),
    "failed": (fail, {"enter": "open"}),
}
OF_NEEDS: Final = ("a", "r", "m", "p", "X", "enter")


def footer(user: User) -> dict[str, str]:
    """The label of each key in the footer that can depend on the need."""
    entries = user.app.screen.query_one(Footer)._screen_entries()
    return {each.key: each.label for each in entries if each.key in OF_NEEDS}


@pytest.mark.parametrize("kind", NEEDS)
async def test_the_footer_names_what_the_keys_do(workspace: Workspace, kind: str) -> None:
    make, expected = NEEDS[kind]
    async with dashboard(workspace, size=WIDE) as user:
        make(workspace)
        await user.until(lambda: user.list("needs").items, "the need")
        await user.settle()
        assert user.pane == "needs"
        assert footer(user) == expected


ON_REQUESTS: Final = {"approval": "open", "question": "reply", "choice": "choose"}


@pytest.mark.parametrize("kind", ON_REQUESTS)
async def test_the_requests_screen_names_what_enter_does(workspace: Workspace, kind: str) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        NEEDS[kind][0](workspace)
        await user.goes_to("7", "requests")
        await user.until(lambda: footer(user).get("enter") == ON_REQUESTS[kind], "the label")


def shows(user: User, effect: str) -> bool:
    """Whether the dashboard shows the ``effect`` of a key: a place, a notice, or nothing left to do."""
    if effect == "answered":
        return not user.app.needs
    return user.place == effect or any(effect in each for each in user._told())


EFFECTS: Final = [
    ("approval", "a", "answered"),
    ("approval", "r", "TextInputDialog"),
    ("approval", "enter", "requests"),
    ("question", "r", "TextInputDialog"),
    ("question", "enter", "requests"),
    ("choice", "r", "TextInputDialog"),
    ("choice", "enter", "requests"),
    ("conflict", "enter", "merge"),
    ("parked", "a", "alice is resumed once at"),
    ("parked", "p", "alice is resumed."),
    ("parked", "m", "TextInputDialog"),
    ("parked", "X", "ConfirmDialog"),
    ("parked", "enter", "agents"),
    ("parked, reset unknown", "p", "alice is resumed."),
    ("parked, reset unknown", "m", "TextInputDialog"),
    ("parked, reset unknown", "X", "ConfirmDialog"),
    ("parked, reset unknown", "enter", "agents"),
    ("failed", "enter", "agents"),
]


def test_each_entry_has_an_effect() -> None:
    assert {(kind, key) for kind, (_, keys) in NEEDS.items() for key in keys} == {
        (kind, key) for kind, key, _ in EFFECTS
    }


@pytest.mark.parametrize(("kind", "key", "effect"), EFFECTS)
async def test_a_key_in_the_footer_has_its_effect(
    workspace: Workspace, kind: str, key: str, effect: str
) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        NEEDS[kind][0](workspace)
        await user.until(lambda: user.list("needs").items, "the need")
        await user.settle()
        await user.press(key)
        await user.until(lambda: shows(user, effect), effect)


@pytest.mark.parametrize("kind", NEEDS)
async def test_a_key_that_is_not_in_the_footer_explains_itself(workspace: Workspace, kind: str) -> None:
    make, expected = NEEDS[kind]
    async with dashboard(workspace, size=WIDE) as user:
        make(workspace)
        await user.until(lambda: user.list("needs").items, "the need")
        await user.settle()
        for key in {"a", "r"} - expected.keys():
            await user.press(key)
            await user.is_told("not possible for the selected item")
