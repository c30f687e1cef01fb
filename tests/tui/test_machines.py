"""Agents and needs of other machines on the overview."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from machine_links import PROGRAM, Ssh, ask, ssh
from tui.driver import MIDDLE, NARROW, User, running
from watchroom import Workspace
from watchroom.features.requests.rows import Option, Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import ANSWER, Row
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp
from watchroom_tui.services.settings import Settings

__all__ = ["ssh"]
pytestmark = pytest.mark.slow(20)


@pytest.fixture
def attic(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace on another machine."""
    with Workspace.open(tmp_path / "attic", agents=["zoe"]) as opened:
        yield opened


@asynccontextmanager
async def dashboard(
    workspace: Workspace,
    attic: Workspace,
    *,
    size: tuple[int, int] = MIDDLE,
    language: Language = "en",
    can_act: bool = True,
) -> AsyncIterator[User]:
    """Run a dashboard of ``workspace`` that is connected to ``attic``."""
    settings = Settings(machines={"attic": {"address": f"ssh://attic{attic.root}", "program": PROGRAM}})
    app = WatchroomApp(
        workspace.journal,
        place="team/",
        person="dana",
        settings=settings,
        language=language,
        open_workspace=(lambda: workspace) if can_act else None,
    )
    async with running(app, size, paints=False) as user:
        await user.has_taken_in(workspace)
        await user.until(lambda: app.machines and app.machines[0].is_connected, "the connection")
        yield user


def zoe_asks(attic: Workspace, request: Request | None = None, name: str = "1") -> int:
    asked = request or Request("prompt", "Which month?")
    return attic.requests.ask(CallContext("zoe"), f"zoe/mcp/{name}", asked).seq


def answers(attic: Workspace) -> list[Row]:
    return [each for each in attic.journal.rows(0) if each.tool == ANSWER]


def needs_of(user: User) -> int:
    return len(user.list("needs").items)


@pytest.mark.parametrize("size", [NARROW, MIDDLE])
async def test_agents_of_both_machines_are_in_one_list_and_a_permission_is_answered(
    ssh: Ssh, workspace: Workspace, attic: Workspace, size: tuple[int, int]
) -> None:
    number = ask(workspace)
    there = ask(attic)
    async with dashboard(workspace, attic, size=size) as user:
        await user.sees("attic/zoe", "alice", "2 need you")
        await user.until(lambda: needs_of(user) == 2, "both needs")
        await user.press("exclamation_mark", "1", "down")
        await user.press("a")
        await user.is_told("attic/alice: answer accepted (approved)")
        await user.until(lambda: needs_of(user) == 1, "one need")
    (answer,) = answers(attic)
    assert (answer.actor, answer.detail["request"]) == ("human:dana", there)
    assert answers(workspace) == []
    assert workspace.journal.row(number) is not None


async def test_keys_typed_ahead_answer_a_need_that_is_new_on_the_overview(
    ssh: Ssh, workspace: Workspace, attic: Workspace
) -> None:
    ask(workspace)
    async with dashboard(workspace, attic) as user:
        await user.until(lambda: needs_of(user) == 1, "the need of this machine")
        await user.press("exclamation_mark")
        await user.until(lambda: user.place == "requests", "the request")
        ask(attic)
        await user.sees("next: approve attic/alice")
        await user.press_at_once("exclamation_mark", "a")
        await user.is_told("attic/alice: answer accepted (approved)")
    assert answers(workspace) == []


async def test_a_request_is_shown_whole_and_rejected_with_a_reason(
    ssh: Ssh, workspace: Workspace, attic: Workspace
) -> None:
    ask(attic)
    async with dashboard(workspace, attic) as user:
        await user.sees("⚑ 1 needs you  next: approve attic/alice")
        await user.press("exclamation_mark", "enter")
        await user.sees("attic/alice · approve", "+ two", "a approve · r reject")
        await user.press("r")
        await user.until(lambda: user.app.focused and user.app.focused.id == "text", "the reason")
        await user.type("not now")
        await user.press("enter")
        await user.is_told("attic/alice: answer accepted (rejected)")
    (answer,) = answers(attic)
    assert "not now" in (attic.journal.content(answer.seq) or "")


async def test_questions_and_choices_are_answered(ssh: Ssh, workspace: Workspace, attic: Workspace) -> None:
    zoe_asks(attic)
    async with dashboard(workspace, attic) as user:
        await user.sees("Which month?")
        await user.press("exclamation_mark", "enter")
        await user.sees("enter answer")
        await user.press("enter")
        await user.until(lambda: user.app.focused and user.app.focused.id == "text", "the editor")
        await user.type("May")
        await user.press("enter")
        await user.is_told("attic/zoe: answer accepted (replied)")
        zoe_asks(
            attic, Request("select", "When?", options=(Option("Today", "now"), Option("Later", "x"))), "2"
        )
        await user.sees("When?")
        await user.press("exclamation_mark", "enter")
        await user.sees("enter answer")
        await user.press("enter")
        await user.sees("1 Today", "2 Later")
        await user.type("3")
        await user.press("enter")
        await user.is_told("Type numbers from 1 to 2.")
        await user.sees("2 Later")
        await user.press("backspace", "2", "enter")
        await user.is_told("attic/zoe: answer accepted (chosen)")
    assert [each.detail["outcome"] for each in answers(attic)] == ["replied", "chosen"]


async def test_a_frozen_machine_is_reported_and_its_agents_are_unknown(
    ssh: Ssh, workspace: Workspace, attic: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.driver.PATIENCE", 20)
    ask(attic)
    async with dashboard(workspace, attic, size=NARROW) as user:
        await user.sees("1 needs you")
        ssh.signal(signal.SIGSTOP)
        await user.press("exclamation_mark", "a")
        await user.sees("answer sent")
        await user.sees("no connection since", "unknown; last known", "not known whether")
        await user.is_told("machine attic: no connection since")
        await user.is_told("attic/alice: the answer did not arrive")
        assert answers(attic) == []
        await user.until(lambda: not user.app.machines[0].sent, "no answer under way")
        await user.press("a")
        await user.is_told("attic/alice: answer accepted")
    assert len(answers(attic)) == 1


async def test_a_stop_says_that_other_machines_go_on(
    ssh: Ssh, workspace: Workspace, attic: Workspace
) -> None:
    async with dashboard(workspace, attic) as user:
        await user.press("ctrl+x")
        await user.is_told("Agents on other machines keep running: attic.")


async def test_viewers_answer_nothing(ssh: Ssh, workspace: Workspace, attic: Workspace) -> None:
    ask(attic)
    async with dashboard(workspace, attic, can_act=False) as user:
        await user.sees("1 needs you")
        await user.press("exclamation_mark", "a")
        await user.press("enter")
        await user.sees("attic/alice · approve")
        await user.press("a")
        await user.settle()
    assert answers(attic) == []


async def test_hostile_texts_of_a_machine_are_escaped(
    ssh: Ssh, workspace: Workspace, attic: Workspace
) -> None:
    zoe_asks(attic, Request("prompt", "[@click=app.quit]x[/] \x1b[31m \u202e\n[/foo]"))
    async with dashboard(workspace, attic) as user:
        await user.sees("[@click=app.quit]x[/] ␛[31m")
        await user.press("exclamation_mark", "enter")
        await user.sees("[@click=app.quit]x[/] ␛[31m", "[/foo]")


MARKUP = "[@click=app.quit]x[/] [/foo] \x1b[31m\x07 \u202e ["
HELLO = json.dumps({"type": "hello", "protocol": 1, "version": MARKUP, "place": MARKUP})


def hostile_summary(time: int, deadline: int, **more: object) -> str:
    need = {
        **dict.fromkeys(("kind", "party", "matter", "agent"), MARKUP),
        "row": 7,
        "opened": deadline,
        "deadline": deadline,
        "details": [MARKUP] * 3,
        "is_simple": True,
        "answers": ["approve", "reject", "reply", "choose", "seen"],
        "options": [{"label": MARKUP, "value": "v"}] * 2,
        **more,
    }
    agent = {"id": MARKUP, "status": "idle", "text": MARKUP, "heard": deadline}
    return json.dumps({"type": "summary", "time": time, "agents": [agent] * 3, "needs": [need] * 3})


def far_end(*lines: str) -> str:
    """A far end that says ``lines`` again and again, and keeps what it gets in the file ``got``."""
    said = "\n".join(f"echo {shlex.quote(each)}" for each in lines)
    return f'(while :; do\n{said}\nsleep 0.3\ndone) &\nexec cat > "$(dirname "$0")/got"'


@pytest.mark.parametrize(("time", "deadline"), [(0, 2**63 - 1), (2**63 - 1, 0), (2**63 - 1, 1), (1, 1)])
async def test_a_hostile_machine_ends_no_dashboard(
    ssh: Ssh, workspace: Workspace, attic: Workspace, time: int, deadline: int
) -> None:
    ssh.replace(f"echo {shlex.quote(HELLO)}\n{far_end(hostile_summary(time, deadline))}")
    async with dashboard(workspace, attic) as user:
        await user.until(lambda: needs_of(user) > 0, "a need")
        await user.press("exclamation_mark", "enter")
        await user.sees("[@click=app.quit]x[/]")
        await user.press("enter")
        await user.until(lambda: user.app.focused and user.app.focused.id == "text", "the choice")
        await user.press("escape", "escape", "s")
        await user.settle()
        await user.press("2", "1")
        await user.settle()


async def test_a_cut_request_is_not_approved_whatever_the_machine_allows(
    ssh: Ssh, workspace: Workspace, attic: Workspace
) -> None:
    ssh.replace(f"echo {shlex.quote(HELLO)}\n{far_end(hostile_summary(1, 1, is_cut=True))}")
    async with dashboard(workspace, attic) as user:
        await user.until(lambda: needs_of(user) > 0, "a need")
        await user.press("exclamation_mark", "a")
        await user.press("enter")
        await user.sees("[@click=app.quit]x[/]")
        await user.press("a")
        await user.settle()
        assert not user.app.machines[0].sent


async def test_the_past_shows_no_other_machine(ssh: Ssh, workspace: Workspace, attic: Workspace) -> None:
    ask(attic)
    async with dashboard(workspace, attic) as user:
        await user.sees("attic/zoe", "1 needs you")
        await user.press("T", "comma")
        await user.until(lambda: not user.app.is_live, "the past")
        await user.until(lambda: not user.shows("attic"), "no other machine")
        assert needs_of(user) == 0


async def test_it_is_shown_in_chinese(ssh: Ssh, workspace: Workspace, attic: Workspace) -> None:
    zoe_asks(attic)
    async with dashboard(workspace, attic, language="zh") as user:
        await user.sees("attic/zoe")
        ssh.block(True)
        ssh.signal(signal.SIGKILL)
        await user.sees("没有连接")
