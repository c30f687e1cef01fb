"""A parked agent is shown with the reset of its limit, and resumed at the reset or now with one key."""

from __future__ import annotations

import pytest
from tui.driver import WIDE, dashboard
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, TurnLimited
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.model import Need, urgent_needs
from watchroom.features.overview.snapshots import read_model
from watchroom.features.sessions.limits import RateLimit
from watchroom.features.sessions.rows import is_leave
from watchroom.model import RESUME, Row, timestamp
from watchroom.texts import LANGUAGES, Language, catalogue
from watchroom_cli.plain.question import answer_call, keys_line, read_question
from watchroom_cli.watch.views import view_of
from watchroom_tui.formatters.labels import reset_time
from watchroom_tui.formatters.need_texts import need_sentence, need_text

pytestmark = pytest.mark.slow(6)


def park(workspace: Workspace, resets: int | None, *, held: str = "") -> ClientSession:
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    session.record(PromptSubmitted("Go"))
    session.record(TurnLimited(RateLimit(resets, "usage [b]limit\x1b[2J reached"), held=held))
    return session


def instructions(workspace: Workspace) -> list[Row]:
    return [row for row in workspace.journal.rows(limit=1000) if row.tool == RESUME]


def need_of(workspace: Workspace) -> Need:
    model = read_model(workspace.journal, workspace.journal.last_seq())
    (need,) = urgent_needs(model, workspace.journal.now())
    return need


async def test_one_key_permits_to_resume_at_the_reset(workspace: Workspace) -> None:
    now = workspace.journal.now()
    resets = now + 3600 * 10**9
    time = reset_time(resets, now)
    async with dashboard(workspace, size=WIDE) as user:
        park(workspace, resets)
        await user.sees(f"parked until {time}", "⧖ parked alice", f"limit until {time}: usage [b]limit␛[2J")
        await user.press("a")
        await user.is_told(f"alice is resumed once at {time}, when its limit resets.")
        (row,) = instructions(workspace)
        assert is_leave(row)
        await user.sees(f"parked until {time}, then resumed")
        await user.until(lambda: not user.shows("limit until"), "that nothing is needed")


async def test_an_unknown_reset_says_so_and_is_resumed_now(workspace: Workspace) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        park(workspace, None)
        await user.sees("parked, reset unknown", "limit, reset unknown: usage")
        await user.press("a")
        assert instructions(workspace) == []
        await user.goes_to("2", "agents")
        await user.sees("⧖ parked, reset unknown")
        await user.press("p")
        await user.is_told("alice is resumed.")
        (row,) = instructions(workspace)
        assert not is_leave(row)


async def test_the_keys_of_an_agent_work_on_its_need(workspace: Workspace) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        park(workspace, None)
        await user.sees("⧖ parked alice", "p resume", "m message", "X end")
        await user.press("p")
        await user.is_told("alice is resumed.")
        assert not any(map(is_leave, instructions(workspace)))


async def test_the_agents_screen_has_the_key_too(workspace: Workspace) -> None:
    resets = workspace.journal.now() + 3600 * 10**9
    async with dashboard(workspace, size=WIDE) as user:
        park(workspace, resets)
        await user.goes_to("2", "agents")
        await user.sees("⧖ parked until", "rate or usage limit")
        await user.press("a")
        await user.until(lambda: any(map(is_leave, instructions(workspace))), "the leave")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("held", ["", "client", "budget"])
def test_each_text_exists_in_each_language(workspace: Workspace, language: Language, held: str) -> None:
    park(workspace, None, held=held)
    need, texts = need_of(workspace), catalogue(language, "watchroom_tui.texts")
    assert need_text(need, texts)
    assert "{" not in need_sentence(need, texts)
    assert "\x1b" not in need_sentence(need, texts)


def test_a_second_report_of_the_limit_is_the_same_need(workspace: Workspace) -> None:
    """An alert is sent once for each identity."""
    session = park(workspace, None)
    first = need_of(workspace)
    session.record(TurnLimited(RateLimit(None, "usage limit reached again")))
    assert need_of(workspace).identity == first.identity


@pytest.mark.parametrize(("key", "when"), [("a", "reset"), ("p", "now")])
def test_the_plain_mode_has_both_answers(workspace: Workspace, key: str, when: str) -> None:
    park(workspace, workspace.journal.now() + 3600 * 10**9)
    texts = catalogue("en", "watchroom_tui.texts")
    question = read_question(workspace.journal, need_of(workspace), texts)
    assert "resume at the reset (a)" in keys_line(question, texts)
    assert "resume now (p)" in keys_line(question, texts)
    call = answer_call(question, key, "", texts, texts)
    assert workspace.tools_for_human("dana").dispatch_tool_call(call.tool, call.arguments)["success"]
    (row,) = instructions(workspace)
    assert is_leave(row) == (when == "reset")


def test_without_a_reset_the_plain_mode_only_resumes_now(workspace: Workspace) -> None:
    park(workspace, None)
    texts = catalogue("en", "watchroom_tui.texts")
    question = read_question(workspace.journal, need_of(workspace), texts)
    assert "a" not in question.keys
    assert "p" in question.keys


def test_show_says_until_when(workspace: Workspace) -> None:
    resets = workspace.journal.now() + 3600 * 10**9
    park(workspace, resets)
    model = read_model(workspace.journal, workspace.journal.last_seq())
    texts = catalogue("en", "watchroom_tui.texts")
    alice = next(each for each in view_of(model, "agents", texts, timestamp) if each["agent"] == "alice")
    assert (alice["status"], alice["resets"]) == ("parked", timestamp(resets))


async def test_stop_all_pauses_a_parked_agent_too(workspace: Workspace) -> None:
    async with dashboard(workspace, size=WIDE) as user:
        park(workspace, workspace.journal.now() + 3600 * 10**9)
        await user.sees("⧖ parked alice")
        await user.press("ctrl+x")
        await user.is_asked("Pause 1 agents: alice?")
