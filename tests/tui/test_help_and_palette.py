"""The help and the palette: the actions of the current screen."""

from __future__ import annotations

import pytest
from textual.widgets import OptionList
from tui.driver import User, dashboard
from watchroom import Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted
from watchroom.agents.clients.session import ClientSession
from watchroom.texts import Language
from watchroom_tui.dialogs.palette import has_word
from watchroom_tui.formatters import labels, legend
from watchroom_tui.keys.actions import ACTIONS, SCREEN_OF_SCOPE, of_scope


async def test_help_and_rows_close_with_esc(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        for opening in (("question_mark",), ("G", "tab", "tab", "enter")):
            await user.press(*opening)
            await user.until(lambda: user.place != "overview", "what lies over the screen")
            await user.press("escape")
            await user.until(lambda: user.place == "overview", "the overview")


@pytest.mark.parametrize(("key", "screen"), [("4", "files"), ("3", "handoffs"), ("8", "activity")])
async def test_help_shows_the_keys_of_this_screen_first(workspace: Workspace, key: str, screen: str) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to(key, screen)
        await user.press("question_mark")
        await user.until(lambda: user.place == "HelpDialog", "the help")
        text = "\n".join(span.text for span in user.spans("detail"))
        first = next(each for each in of_scope(screen) if not each.in_repository)
        own, everywhere = first.help(user.app.texts), "Everywhere"
        assert own in text
        assert text.index(own) < text.index(everywhere)
        others = {"files", "handoffs", "activity"} - {screen}
        assert not any(of_scope(other)[0].help(user.app.texts) in text for other in others)
        await user.press("escape")
        await user.until(lambda: user.place == screen, screen)


async def test_help_names_a_way_to_each_action_and_then_the_signs(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("question_mark")
        await user.until(lambda: user.place == "HelpDialog", "the help")
        titles = [each for each in user.spans("detail") if each.style == "title"]
        assert [each.text.strip() for each in titles][1] == "Signs: agents and sessions"
        keys = [each.text.strip() for each in user.spans("detail") if each.style == "key"]
        assert all(keys)
        assert ": and its name" in keys
        assert any("newest seal" in each.text for each in user.spans("detail"))


def test_the_signs_of_needs_differ() -> None:
    signs = [span.text for span in labels.NEED_MARKS.values()]
    versions = [span.text for _, span in legend._VERSION_SIGNS]
    assert labels.NEED_MARKS["message"].text not in versions
    assert labels.NEED_MARKS["outside"].text in versions
    assert signs.count(labels.NEED_MARKS["message"].text) == 1


async def test_asking_for_help_twice_needs_one_esc(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.press("question_mark", "question_mark", "escape")
        assert user.place == "overview"


async def test_the_palette_lists_the_actions_of_all_screens_with_their_keys_and_runs_them(
    workspace: Workspace, conflict: int
) -> None:
    async with dashboard(workspace) as user:
        await user.goes_to("4", "files")
        await user.press("ctrl+p")
        palette = await offered(user)
        for action in ACTIONS:
            if action.scope in SCREEN_OF_SCOPE or action.scope == "app":
                keys = " ".join(action.shown_keys({})) or "no key"
                assert any(action.help(user.app.texts) in each and f"({keys})" in each for each in palette), (
                    action.id
                )
        await user.type("Everywhere: Activity")
        await user.until(lambda: len(options(user)) == 1, "the one that matches")
        await user.press("enter")
        await user.until(lambda: user.place == "activity", "the activity screen")


@pytest.mark.parametrize(
    ("language", "query", "action"),
    [
        ("en", "theme", "theme"),
        ("en", "undo", "overview_revert"),
        ("en", "cost", "screen_usage"),
        ("en", "resume", "overview_pause"),
        ("en", "buffers", "buffers"),
        ("zh", "主题", "theme"),
        ("zh", "费用", "screen_usage"),
        ("zh", "恢复", "overview_pause"),
    ],
)
async def test_palette_finds_actions_by_synonyms_on_one_line(
    workspace: Workspace, language: Language, query: str, action: str
) -> None:
    async with dashboard(workspace, language=language) as user:
        await user.press("ctrl+p")
        await offered(user)
        await user.type(query)
        sought = next(each for each in ACTIONS if each.id == action).help(user.app.texts)
        await user.until(lambda: any(sought in each for each in options(user)[:8]), action)
        assert not any("\n" in each for each in options(user))


@pytest.mark.parametrize(
    ("query", "key"), [("undo", "V"), ("revert", "V"), ("resume", "p"), ("stop all", "^x"), ("help", "?")]
)
async def test_the_first_hit_is_possible_and_means_the_query(
    workspace: Workspace, query: str, key: str
) -> None:
    async with dashboard(workspace) as user:
        await user.press("ctrl+p")
        await offered(user)
        await user.type(query)
        await user.until(lambda: options(user) and f"({key})" in options(user)[0], key)


async def test_the_palette_changes_nothing_that_was_not_in_sight(workspace: Workspace) -> None:
    client = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", attachment="run"))
    client.record(PromptSubmitted("Go"))
    async with dashboard(workspace) as user:
        await user.press("ctrl+p")
        await offered(user)
        await user.type("resume")
        await user.until(lambda: options(user) and "(p)" in options(user)[0], "the key")
        await user.press("enter")
        await user.is_told("Select an item, then press p")
        assert user.place != "overview"
        assert not any(row.actor.startswith("human:") for row in workspace.journal.rows())


async def test_the_palette_says_why_an_action_is_not_possible(workspace: Workspace) -> None:
    async with dashboard(workspace) as user:
        await user.chooses("buffers")
        await user.is_told("Agents: no agent has an open buffer")
        await user.chooses("previous_row")
        await user.is_told("open the timeline first, with T")
        await user.goes_to("4", "files")
        await user.press("ctrl+p")
        await offered(user)
        await user.type("conflict")
        await user.until(
            lambda: any("this file has no open conflict" in each for each in options(user)), "why"
        )


def test_words_begin_with_the_query() -> None:
    assert has_word("dark m", "Everywhere: light/dark  (T) theme, Dark mode")
    assert has_word("(T)", "Everywhere: light/dark  (T)")
    assert not has_word("ark", "Everywhere: light/dark  (T)")


async def test_the_palette_says_in_the_language_of_the_dashboard_that_nothing_matches(
    workspace: Workspace,
) -> None:
    async with dashboard(workspace, language="zh") as user:
        await user.press("ctrl+p")
        await offered(user)
        await user.type("qqqq")
        await user.until(lambda: options(user) == [user.app.texts("palette.no_match")], "that there is none")
        await user.press("enter")
        assert user.place == "Palette"


async def offered(user: User) -> list[str]:
    """Return the entries of the open palette as text."""
    await user.until(lambda: user.place == "Palette", "the palette")
    await user.until(lambda: options(user), "commands")
    return options(user)


def options(user: User) -> list[str]:
    found = user.app.screen.query_one(OptionList)
    return [str(found.get_option_at_index(index).prompt) for index in range(found.option_count)]


def test_no_key_has_two_meanings() -> None:
    meanings: dict[str, set[str]] = {}
    for action in ACTIONS:
        for key in action.keys:
            meanings.setdefault(key, set()).add(action.meaning or action.id)
    assert {key: found for key, found in meanings.items() if len(found) > 1} == {}
