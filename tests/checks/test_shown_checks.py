"""What people see of a check: on screens, in the command line, in the report, and in Chinese."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from checks.checking import agent_of, claim_of, configure, ends, model_of
from cli.running import Captured, as_typed, printed, printed_json, printed_rows
from pty_driver import Terminal
from trees.tree_client import ScriptedClient
from tui.driver import dashboard
from tui.test_unreadable_journal import without_rows
from watchroom import Workspace
from watchroom.agents.clients.configuration import AGENT_VARIABLE
from watchroom.model import Note
from watchroom.texts import LANGUAGES
from watchroom_tui.formatters.check_texts import check_text, claim_text
from watchroom_tui.presentation.localization import load_texts

PATIENCE = 30.0
FAILING = "echo 'AssertionError: what broke'; echo '2 failed, 39 passed in 0.1s'; exit 1"


@pytest.fixture(autouse=True)
def _unmarked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(AGENT_VARIABLE, raising=False)


def claim_falsely(workspace: Workspace, alice: ScriptedClient, folder: Path) -> None:
    """Let alice claim that it is done, and its check fail."""
    configure(workspace, FAILING, "attempts = 0")
    alice.hook("Stop")
    workspace.checks.run(claim_of(workspace), cache=str(folder / "cache"))


@pytest.fixture
def unproven(kept: Workspace, alice: ScriptedClient, tmp_path: Path) -> Workspace:
    claim_falsely(kept, alice, tmp_path)
    return kept


def test_the_command_line_shows_it(unproven: Workspace, capsys: Captured) -> None:
    agents = printed_json(capsys, "show", unproven.root, "agents", "--json")
    assert agents[0]["check"] == "unproven · check failed: 2 of 41 tests"
    (need,) = printed_json(capsys, "show", unproven.root, "needs", "--json")
    assert (need["kind"], need["path"]) == ("unproven", "alice")
    assert "2 of 41 tests" in need["what"]
    report = printed_json(capsys, "report", unproven.root, "--format", "json")
    assert [row["detail"]["sequel"] for row in report["checks"]] == ["unproven"]
    events = printed_rows(capsys, "events", unproven.root, "--json", "--agent", "alice")
    begun, ended = [each for each in events if each["kind"].startswith("check_")]
    assert begun["session"] == "alice/session-of-alice"
    assert (ended["ending"], ended["failed"], ended["sequel"]) == ("failed", 2, "unproven")
    page = printed(capsys, "report", unproven.root)
    assert "2 of 41 tests" in page


def test_a_claim_without_a_check_is_quiet(kept: Workspace, alice: ScriptedClient) -> None:
    texts = load_texts("en")
    configure(kept, "true", 'paths = ["nothing"]')
    alice.hook("Stop")
    view = agent_of(kept)
    assert check_text(view.check, texts) == ""
    assert claim_text(view, texts, has_checks=model_of(kept).has_checks) == "done, no check"


def test_a_person_reads_the_output_and_accepts_the_work(unproven: Workspace) -> None:
    with Terminal(as_typed("watch", unproven.root, "--as", "dana"), 160, 60) as terminal:
        terminal.wait_for_text("says that it is done, but its check did not pass", timeout=PATIENCE)
        terminal.send("s\r")
        terminal.wait_for_text("AssertionError: what broke", timeout=PATIENCE)
        terminal.send("m\r")
        terminal.wait_for(
            lambda lines: not [each for each in model_of(unproven).needs if each.kind == "unproven"],
            what="that the work is accepted",
            timeout=PATIENCE,
        )
    view = agent_of(unproven).check
    assert view is not None
    assert check_text(view, load_texts("en")).endswith("accepted by human:dana")


async def test_the_screens_show_it_beside_the_agent(unproven: Workspace) -> None:
    async with dashboard(unproven) as user:
        await user.sees("alice says that it is done", "check failed: 2 of 41 tests")
        await user.goes_to("2", "agents")
        await user.sees("unproven · check failed: 2 of 41 tests")
        await user.press("exclamation_mark")
        await user.sees("2 failed, 39 passed")
        await user.press("enter")
        await user.sees("AssertionError: what broke")
        await user.press("escape", "S")
        await user.is_asked("alice: says that it is done")
        await user.press("enter")
        await user.until(lambda: not user.app.needs, "that the work is accepted")
        await user.goes_to("2", "agents")
        await user.sees("accepted by human:")


def notes(workspace: Workspace, count: int) -> None:
    workspace.journal.append([Note("bob", "read", "collab", f"{number}.md") for number in range(count)])


@pytest.mark.parametrize("later", [1, 2500, 40_000])
async def test_it_is_accepted_with_two_keys_typed_at_once(
    unproven: Workspace, monkeypatch: pytest.MonkeyPatch, later: int
) -> None:
    # As on a machine that takes longer for the rows than other loads may take.
    monkeypatch.setattr("watchroom_tui.services.key_queue._LOAD_SECONDS", 0)
    notes(unproven, later)
    async with dashboard(unproven) as user:
        await user.until(lambda: user.app.progress == 1.0 and user.app.needs, "the need")
        await user.press_at_once("exclamation_mark", "S")
        await user.is_asked("alice: says that it is done")
        assert user.app.current_mode == "activity"


async def test_keys_typed_ahead_of_a_row_that_takes_too_long_are_dropped(
    unproven: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("watchroom_tui.services.key_queue._ARRIVAL_SECONDS", 0)
    notes(unproven, 40_000)
    async with dashboard(unproven) as user:
        await user.until(lambda: user.app.progress == 1.0 and user.app.needs, "the need")
        await user.press_at_once("exclamation_mark", "S", "2")
        await user.is_told("Check the item under the cursor")
        assert user.app.current_mode == "activity"
        screen = user.app.base_screen
        assert screen is not None
        await user.until(lambda: not screen.is_arriving, "the row of the need")
        await user.press("S")
        await user.is_asked("alice: says that it is done")


async def test_keys_do_not_wait_for_a_row_that_cannot_be_read(unproven: Workspace) -> None:
    notes(unproven, 2500)
    async with dashboard(unproven) as user:
        await user.until(lambda: user.app.progress == 1.0 and user.app.needs, "the need")
        await user.goes_to("8", "activity")
        await user.until(lambda: len(user.list("rows").items) == 1_000, "the first page")
        with without_rows(unproven):
            await user.press("exclamation_mark")
            await user.is_told("The journal could not be used")
            screen = user.app.base_screen
            assert screen is not None
            assert not screen.is_arriving
        await user.press("G")
        await user.until(lambda: len(user.list("rows").items) == 2_000, "the second page")
        await user.press_at_once("exclamation_mark", "S")
        await user.is_asked("alice: says that it is done")


@pytest.mark.parametrize("keys", [["f"], ["slash", *"config", "enter"], ["slash", *"nothing", "enter"]])
async def test_it_is_found_although_other_rows_are_shown(unproven: Workspace, keys: list[str]) -> None:
    notes(unproven, 3)
    async with dashboard(unproven) as user:
        await user.until(lambda: user.app.progress == 1.0 and user.app.needs, "the need")
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "rows")
        before = len(user.list("rows").items)
        await user.press(*keys)
        await user.until(lambda: len(user.list("rows").items) != before, "other rows")
        await user.press_at_once("exclamation_mark", "S")
        await user.is_asked("alice: says that it is done")


async def test_it_is_found_among_rows_that_are_held_back(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path
) -> None:
    notes(kept, 5)
    async with dashboard(kept) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "rows")
        await user.press("down", "down")
        await asyncio.to_thread(claim_falsely, kept, alice, tmp_path)
        await user.sees("new ↑")
        await user.until(lambda: user.app.needs, "the need")
        await user.press_at_once("exclamation_mark", "S")
        await user.is_asked("alice: says that it is done")


async def test_it_is_found_below_rows_that_are_held_back(unproven: Workspace) -> None:
    async with dashboard(unproven) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items and user.app.needs, "the need")
        need = user.app.needs[0].row.seq
        assert user.cursor("rows").seq == need
        await user.press("down", "down")
        notes(unproven, 3)
        await user.sees("new ↑")
        await user.press_at_once("exclamation_mark", "S")
        await user.is_asked("alice: says that it is done")


@pytest.mark.parametrize("later", [1, 1500])
async def test_it_is_found_if_it_is_new_since_the_last_visit(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path, later: int
) -> None:
    notes(kept, 5)
    async with dashboard(kept) as user:
        await user.goes_to("8", "activity")
        await user.until(lambda: user.list("rows").items, "rows")
        await user.goes_to("2", "agents")
        await asyncio.to_thread(claim_falsely, kept, alice, tmp_path)
        notes(kept, later)
        await user.has_taken_in(kept)
        await user.until(lambda: user.app.needs, "the need")
        await user.press_at_once("exclamation_mark", "S")
        await user.is_asked("alice: says that it is done")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("attempts", [0, 1])
def test_each_result_has_a_text_in_each_language(
    kept: Workspace, alice: ScriptedClient, tmp_path: Path, language: str, attempts: int
) -> None:
    texts = load_texts(language)  # type: ignore[arg-type]
    configure(kept, "exit 3", f"attempts = {attempts}")
    alice.hook("Stop")
    kept.checks.run(claim_of(kept), cache=str(tmp_path / "cache"))
    said = check_text(agent_of(kept).check, texts)
    assert "3" in said
    assert ends(kept)[-1].sequel == ("back" if attempts else "unproven")
