"""Search everything from any screen: hits while typing, and where they lead."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from calls import ok
from runtime.weather import call, calling
from tui.driver import MIDDLE, NARROW, User, dashboard
from tui.sessions import running, says
from watchroom import Toolbox, Workspace
from watchroom_tui.app import WatchroomApp


async def searches(user: User, words: str, *, hits: int) -> None:
    await user.press("ctrl+f")
    await user.until(lambda: user.place == "SearchDialog", "the search")
    await user.press("ctrl+u")
    await user.paste(words)
    await user.until(lambda: len(user.list("hits").items) == hits, f"{hits} hits")


async def test_hits_appear_while_typing_and_lead_to_their_versions(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="one\nuse the 数据\n库 always\n", message="m")
    ok(bob, "collab_write", filepath="plan.md", content="one\n", message="m", expected_version=1)
    ok(bob, "save_to_my_workspace", filename="notes.md", content="the \x1b[31m [bold]database[/]\n")
    async with dashboard(workspace) as user:
        await searches(user, "数据库", hits=1)
        await user.sees("plan.md v1 · line 2 · alice")
        assert [span.text for span in user.spans("excerpt") if span.style == "match"] == ["数据", "库"]
        await user.press("enter")
        await user.until(lambda: user.place == "files", "the files")
        await user.until(lambda: user.pane == "versions" and user.cursor("versions"), "its versions")
        assert (user.cursor("versions").path, user.cursor("versions").version) == ("plan.md", 1)
        # Texts of agents are literal. For a private file the row opens above the screen.
        await searches(user, "database", hits=1)
        await user.sees("[bold]database[/]")
        await user.press("enter")
        await user.until(lambda: user.place == "RowDialog", "the row")
        await user.sees("[bold]database[/]")


async def test_agent_and_zone_are_typed_with_the_words(
    workspace: Workspace, alice: Toolbox, bob: Toolbox
) -> None:
    for toolbox in (alice, bob):
        ok(toolbox, "save_to_my_workspace", filename="notes.md", content="common words\n")
    ok(alice, "collab_write", filepath="plan.md", content="common words\n", message="m")
    async with dashboard(workspace, size=NARROW) as user:
        await searches(user, "common", hits=3)
        await user.paste(" agent:alice")
        await user.until(lambda: len(user.list("hits").items) == 2, "what alice wrote")
        await user.paste(" zone:private")
        await user.until(lambda: len(user.list("hits").items) == 1, "what she wrote for herself")
        await user.paste(" ?!")
        await user.press("ctrl+u")
        await user.until(lambda: not user.list("hits").items, "nothing")
        await user.sees("Type words")
        await user.press("escape")
        await user.until(lambda: user.place == "overview", "the overview")


async def test_a_step_of_a_session_is_found_and_shown_in_its_transcript(workspace: Workspace) -> None:
    save = call("save_to_my_workspace", filename="notes.md", content="hidden treasure")
    answers = (calling(save, content="I save my notes."), says("All is saved."))
    async with (
        dashboard(workspace) as user,
        running(workspace, "alice", *answers, task="Write notes.") as alice,
    ):
        assert (await alice.ended()).status == "done"
        await searches(user, "treasure zone:session", hits=1)
        await user.press("enter")
        await user.until(lambda: user.place == "agents", "the agents")
        await user.until(lambda: user.pane == "session", "the transcript")
        transcript = user.text("session")
        await user.until(lambda: transcript._drawing is not None, "what was said")
        await user.until(lambda: "I save my notes." in transcript.copied_text()[0], "the step")


async def test_keys_typed_at_once_wait_for_the_hits(workspace: Workspace, alice: Toolbox) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="needle\n", message="m")
    workspace.search_index.index_missing(workspace.journal, Event(), share=1.0)
    async with dashboard(workspace) as user:
        await user.press("ctrl+f", *"needle", "enter")
        await user.until(lambda: user.place == "files", "the files")


async def test_a_viewers_search_indexes_missing_rows(
    workspace: Workspace, alice: Toolbox, root: Path
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="needle\n", message="m")
    app = WatchroomApp(workspace.journal, place="team/", root=str(root))
    async with app.run_test(size=MIDDLE, notifications=True) as pilot:
        user = User(app, pilot)
        await user.has_taken_in(workspace)
        await searches(user, "needle", hits=1)


async def test_a_search_in_the_past_finds_nothing_later(
    workspace: Workspace, alice: Toolbox, root: Path
) -> None:
    ok(alice, "collab_write", filepath="plan.md", content="needle\n", message="m")
    then = workspace.journal.last_seq()
    ok(alice, "collab_write", filepath="plan.md", content="needle needle\n", message="m", expected_version=1)
    app = WatchroomApp(workspace.journal, place="team/", until=then, root=str(root))
    async with app.run_test(size=MIDDLE, notifications=True) as pilot:
        user = User(app, pilot)
        await user.until(lambda: user.model.seq >= then, "that moment")
        await searches(user, "needle", hits=1)
        assert user.cursor("hits").row.seq == then
