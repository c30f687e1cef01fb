"""Pictures of requests and sessions, at each size and in both languages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from calls import ok
from runtime.weather import Chunk, call, calling
from syrupy.assertion import SnapshotAssertion
from tui.driver import MIDDLE, NARROW, User, past
from tui.pictures import ALL, Sizes, at_rest, pictured
from tui.recorded import NOON, REPORT, recorded
from tui.sessions import asks
from watchroom import Agent, Workspace
from watchroom.features.calls.agent_tools import agent_tools
from watchroom.features.sessions.runtime import ChatAgent, ModelPayload, Policies, Session
from watchroom.kernel.journal import Journal
from watchroom.texts import Language
from watchroom_tui.app import WatchroomApp

EXACT = REPORT.replace("12 % more cargo", "12.4 % more cargo").replace("- When does dredging begin?\n", "")


def says_once(
    answer: Sequence[Chunk], *, is_whole: bool = True
) -> Callable[[ModelPayload], AsyncIterator[Chunk]]:
    """Return a model with one answer. An incomplete one stops in mid-sentence."""

    async def model(payload: ModelPayload) -> AsyncIterator[Chunk]:
        for chunk in answer:
            yield chunk
        if not is_whole:
            await asyncio.Event().wait()

    return model


TASKS: dict[str, tuple[str, list[Chunk]]] = {
    "analyst": (
        "Check the figures of the report against the raw numbers.",
        calling(
            call(
                "collab_write",
                filepath="report.md",
                content=EXACT,
                message="exact figure",
                expected_version=1,
            ),
            content="The raw numbers say 12.4 %, not 12 %. I would like to correct the report.",
        ),
    ),
    "researcher": (
        "Find out when dredging begins.",
        asks("Which source should I trust more: port or ministry?"),
    ),
    "writer": (
        "Write the summary.",
        asks("Which sections go in?", "Findings", "Open questions", "数据", several=True),
    ),
    "editor": (
        "Read the report once more.",
        [{"content": "I read the findings first. The second sentence is too"}],
    ),
}


def asking(root: Path) -> None:
    """Run four agents: three ask a person, the fourth is writing a text."""
    layers = {"editor": "top", "analyst": "mid"}
    agents = [Agent(name, layer=layers.get(name, "bottom")) for name in TASKS]  # type: ignore[arg-type]  # layers
    with Workspace.open(root, agents=agents) as workspace:
        writer = workspace.tools("writer")
        ok(writer, "collab_write", filepath="report.md", content=REPORT, message="draft", expected_version=0)
        asyncio.run(_all_at_work(workspace))
        workspace.flush()


async def _all_at_work(workspace: Workspace) -> None:
    committed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(committed.set)

    end = workspace.subscribe(wake)
    async with AsyncExitStack() as stack:
        for name, (task, answer) in TASKS.items():
            agent = ChatAgent(
                agent_tools(workspace.tools(name)),
                model_runtime=says_once(answer, is_whole=name != "editor"),
                policies=Policies(tools={"collab_write": "ask"}),
                asks=True,
            )
            messages = [{"role": "user", "content": task}]
            session: Session = await stack.enter_async_context(
                workspace.sessions.begin(name, agent, messages=messages, session_id=f"{name}-1")
            )
            work = asyncio.create_task(session.run())
            stack.push_async_callback(_stopped, work)
            # One after the other, so that the rows have the same numbers each time.
            while not _is_at_rest(workspace, name):
                await committed.wait()
                committed.clear()
    end()


def _is_at_rest(workspace: Workspace, agent: str) -> bool:
    newest = workspace.journal.rows_before(workspace.journal.last_seq() + 1, limit=1)[0]
    return newest.actor == agent and newest.tool == ("llm_stream" if agent == "editor" else "ask_person")


async def _stopped(work: asyncio.Task[object]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Journal]:
    found = recorded(tmp_path_factory.mktemp("asking"), asking)
    yield found
    found.close()


@asynccontextmanager
async def at_noon(journal: Journal, size: tuple[int, int]) -> AsyncIterator[User]:
    """Run the live dashboard with a stopped clock, and a workspace to act on."""
    with TemporaryDirectory() as elsewhere, Workspace.open(elsewhere) as workspace:
        app = WatchroomApp(journal, place="team/", open_workspace=lambda: workspace)
        app.now = lambda: NOON  # type: ignore[method-assign]
        async with app.run_test(size=size, notifications=True) as pilot:
            user = User(app, pilot)
            await user.until(lambda: len(user.model.requests) == 3, "the requests")
            await user.until(lambda: app.workspace is not None, "the open workspace")
            yield user


async def goes_to_requests(user: User, which: int) -> None:
    await user.goes_to("7", "requests")
    await user.until(lambda: len(user.list("requests").items) == 3, "the requests")
    await user.press(*["down"] * which)


async def goes_to_approval(user: User) -> None:
    await goes_to_requests(user, 0)
    await user.until(lambda: "analyst" in str(user.text("request").border_title), "the request")
    if "request" not in user.shown_panes():
        await user.press("enter")


async def goes_to_choice(user: User) -> None:
    await goes_to_requests(user, 2)
    await user.until(lambda: len(user.list("choices").items) == 3, "the choices")
    await user.press("enter", "down")


async def goes_to_session(user: User) -> None:
    await user.goes_to("2", "agents")
    await user.press("enter")
    await user.sees("12.4 %, not 12 %")
    await user.press("up", "enter")


async def goes_to_what_is_being_said(user: User) -> None:
    await user.goes_to("2", "agents")
    await user.press("G", "enter")
    await user.sees("is too▌")
    await user.until(lambda: not user.list("rows").items, "that it has done nothing")


async def sees_overview(user: User) -> None:
    await user.until(lambda: len(user.list("needs").items) == 3, "the needs")


SCREENS = {
    "overview": sees_overview,
    "approval": goes_to_approval,
    "choice": goes_to_choice,
    "session": goes_to_session,
    "saying": goes_to_what_is_being_said,
}


PICTURED: Final[Mapping[str, Sizes]] = {
    "overview": (MIDDLE,),
    "approval": ALL,
    "choice": (NARROW, MIDDLE),
    "session": ALL,
    "saying": (NARROW, MIDDLE),
}


@pytest.mark.parametrize(("screen", "size"), pictured(PICTURED))
async def test_every_screen(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int], screen: str
) -> None:
    async with past(journal, journal.last_seq(), size=size) as user:
        await SCREENS[screen](user)
        assert await at_rest(user) == picture


@pytest.mark.parametrize("size", [NARROW, MIDDLE], ids=["80x24", "120x40"])
async def test_a_review_half_done(
    journal: Journal, picture: SnapshotAssertion, size: tuple[int, int]
) -> None:
    async with at_noon(journal, size) as user:
        await goes_to_approval(user)
        await user.press(*["tab"] * (user.pane != "request"))
        await user.until(lambda: user.pane == "request", "the request")
        await user.press("right_square_bracket", "semicolon", *"Ask the port first.", "enter")
        await user.sees("┃ Ask the port first.")
        await user.press("space")
        await user.sees("1 of 2 hunks taken")
        assert await at_rest(user) == picture


@pytest.mark.parametrize("screen", ["approval", "session"])
async def test_in_chinese(journal: Journal, picture: SnapshotAssertion, screen: str) -> None:
    language: Language = "zh"
    async with past(journal, journal.last_seq(), language=language) as user:
        await SCREENS[screen](user)
        assert await at_rest(user) == picture
