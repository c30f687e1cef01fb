"""The simulated agents run on the runtime: in sessions that are whole, that end, and that are read as they grow."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from simulating import all_rows, open_team, run_for, run_until
from watchroom import Workspace
from watchroom.model import ENDED, Json
from watchroom.runtime import AgentState, AssistantMessage, Message, ToolMessage, UserMessage
from watchroom.simulation import Simulation
from watchroom.simulation.mind import Mind
from watchroom.simulation.steps import Call, Pause, Script, Task, Turn
from watchroom.simulation.tally import Tally
from watchroom.simulation.voice import Voice, sentences

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""What an agent writes down where it says when: that alone is not the seed's."""

SLOW = re.compile(r"Executing .* took [0-9.]+ seconds")


def states(workspace: Workspace, agent: str = "") -> list[AgentState]:
    sessions = workspace.sessions
    return [sessions.state(head.agent, head.id) for head in sessions.list(agent)]


def is_whole(state: AgentState) -> bool:
    """Each call has one result, in the order of the calls, before anything else is said."""
    calls = [
        call.id for each in state.messages if isinstance(each, AssistantMessage) for call in each.tool_calls
    ]
    results = [each.tool_call_id for each in state.messages if isinstance(each, ToolMessage)]
    return calls == results and len(set(calls)) == len(calls)


def test_every_session_is_done_or_left_so_that_it_can_be_resumed(root: Path) -> None:
    workspace, team = open_team(root, 6)
    with workspace:
        summary = run_for(workspace, Simulation(workspace, team, seed=4, speed=0), 300)
        left = [state for state in states(workspace) if state.status != "done"]
        assert len(left) <= len(team)
        assert {state.status for state in left} <= {"idle", "running"}
        assert all(map(is_whole, states(workspace)))
        assert summary.sessions == len(states(workspace)) - len(left)
        assert summary.tokens > 0
        run_for(workspace, Simulation(workspace, team, seed=5, speed=0), 100)
        ended = {state.session_id for state in states(workspace) if state.status == "done"}
        assert {state.session_id for state in left} <= ended
        assert all(map(is_whole, states(workspace)))


def test_a_session_says_what_it_is_about_and_how_it_went(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:
        run_for(workspace, Simulation(workspace, team, seed=6, speed=0), 250)
        done = [state for state in states(workspace) if state.status == "done"]
        assert len(done) > 50
        for state in done:
            task, *_, last = state.messages
            assert isinstance(task, UserMessage)
            assert isinstance(last, AssistantMessage)
            assert not last.tool_calls
            said = [each.content for each in state.messages if not isinstance(each, ToolMessage)]
            assert all(0 < len(text) < 400 and "{" not in text for text in said), said
            assert state.spent.input_tokens > state.spent.output_tokens > 0
        tasks = {state.messages[0].content for state in done}
        assert len(tasks) > 15
        assert all(len(state.messages) < 120 for state in states(workspace))
        (translated, *_) = states(workspace, "translator")
        assert not translated.messages[0].content.isascii()


def test_an_agent_is_told_its_task_by_its_supervisor(root: Path) -> None:
    workspace, team = open_team(root, 5)
    with workspace:
        run_for(workspace, Simulation(workspace, team, speed=0), 60)
        for agent in team:
            for state in states(workspace, agent.id):
                assert isinstance(state.messages[0], UserMessage)
                assert state.messages[0].author == agent.supervisor


def test_what_an_agent_says_is_seen_while_it_says_it(root: Path) -> None:
    workspace, team = open_team(root, 3)
    with workspace:

        def streamed() -> bool:
            return Counter(row.tool for row in all_rows(workspace))["llm_stream"] > 20

        run_until(workspace, Simulation(workspace, team, speed=4), streamed)
        rows = all_rows(workspace)
        session = next(row.path for row in rows if row.tool == "call_llm")
        tools = [row.tool for row in rows if row.path == session]
        assert tools.index("begin_session") < tools.index("llm_stream") < tools.index("call_llm")


def test_alone_an_agent_says_and_does_the_same_again(tmp_path: Path) -> None:
    def told(name: str, seed: int) -> list[tuple[str, str]]:
        workspace, team = open_team(tmp_path / name, 5)
        with workspace:
            reviewer = [agent for agent in team if agent.id == "reviewer"]
            simulation = Simulation(workspace, reviewer, seed=seed, speed=0)
            run_for(workspace, simulation, 150)
            assert simulation.summary().errors == ()
            said = [
                (each.content, TIME.sub("", "".join(call.function.arguments for call in each.tool_calls)))
                for state in sorted(states(workspace), key=lambda state: state.created_at)
                for each in state.messages
                if isinstance(each, AssistantMessage)
            ]
        return said[:200]

    first = told("first", 11)
    assert first == told("again", 11)
    assert first != told("other", 12)


def test_a_message_is_acknowledged_and_kept(root: Path) -> None:
    workspace, team = open_team(root, 3)
    with workspace:
        dana = workspace.tools_for_human("dana")
        text = "Leave the fares alone until Tuesday"
        told: list[str] = []

        def kept() -> bool:
            # To each session anew: whoever has just ended one hears nothing.
            for row in workspace.journal.heads("session", "researcher/"):
                session = row.path.partition("/")[2]
                if session not in told and row.tool == "call_tool":
                    told.append(session)
                    given: dict[str, Json] = {"to": f"researcher/{session}", "payload": {"text": text}}
                    assert dana.dispatch_tool_call("send_message", given)["success"]
            head = workspace.journal.head("private", "researcher/log.md")
            return head is not None and text in (workspace.journal.content(head.seq) or "")

        run_until(workspace, Simulation(workspace, team, speed=5), kept)
        answers = [
            each.content
            for state in states(workspace, "researcher")
            for each in state.messages
            if isinstance(each, AssistantMessage)
        ]
        assert any("dana" in answer and text in answer for answer in answers)


def test_an_agent_whose_session_is_cancelled_begins_another(root: Path) -> None:
    workspace, team = open_team(root, 3)
    with workspace:
        dana = workspace.tools_for_human("dana")

        def went_on() -> bool:
            heads = workspace.sessions.list("researcher")
            ended = [head for head in heads if head.status == "cancelled"]
            if not ended:
                dana.dispatch_tool_call("cancel_agent", {"agent_id": "researcher"})
            return bool(ended) and heads[-1].status not in ENDED

        assert run_until(workspace, Simulation(workspace, team, speed=5), went_on).errors == ()
        assert all(map(is_whole, states(workspace)))


def told(script: Script[None]) -> Mind:
    return Mind("alice", script, Voice("alice", 0), Tally(), clock=lambda: "2031-03-01T09:30:00Z")


def short() -> Script[None]:
    yield Task("note")
    yield Pause(1.0)
    yield Call("save_to_my_workspace", {"filename": "a.md", "content": "A", "message": "Begin"})
    while True:
        yield Turn()
        yield Task("browse")
        yield Call("collab_list", {})


def test_what_was_cut_short_is_said_again() -> None:
    mind = told(short())
    task, said = mind.opens()
    assert task.kind == "note"
    first = mind.reply([UserMessage(content=said)])
    assert mind.reply([UserMessage(content=said)]) == first
    ((tool, arguments),) = first.calls
    assert (tool, arguments["filename"]) == ("save_to_my_workspace", "a.md")


def test_a_word_after_the_last_word_is_answered() -> None:
    mind = told(short())
    messages: list[Message] = [UserMessage(content=mind.opens()[1])]
    messages.append(AssistantMessage(content=mind.reply(messages).text))
    messages.append(ToolMessage(tool_call_id="1", content=json.dumps({"success": True})))
    closing = mind.reply(messages)
    assert closing.calls == ()
    messages += [AssistantMessage(content=closing.text), UserMessage(content="Thanks!", author="human:dana")]
    assert "Thanks!" in mind.reply(messages).text


@pytest.mark.parametrize("part", sorted(sentences()))
def test_what_is_said_has_only_known_slots(part: str) -> None:
    slots = dict.fromkeys(
        (
            "about",
            "file",
            "message",
            "base",
            "author",
            "version",
            "target",
            "agent",
            "tool",
            "problem",
            "who",
            "text",
            "answer",
            "piece",
        ),
        "x",
    )
    for templates in sentences()[part].values():
        assert templates
        for template in templates:
            assert "{" not in template.format_map(slots)


def test_the_demo_ends_without_a_warning(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-X",
        "dev",
        "-W",
        "error",
        "-m",
        "watchroom_tui.cli",
        "demo",
        str(tmp_path / "demo"),
    ]
    for speed in ("0", "3"):
        done = subprocess.run(
            [*command, "--headless", "--for", "1.5", "--speed", speed],
            capture_output=True,
            text=True,
            check=False,
        )
        # How long a callback takes is the machine's affair; asyncio's debug mode tells of it, too.
        told = [line for line in done.stderr.splitlines() if not SLOW.fullmatch(line)]
        assert (done.returncode, told) == (0, [])
