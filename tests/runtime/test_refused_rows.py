"""Sessions whose rows the journal refuses keep their instructions, and report no call that did not start."""

from __future__ import annotations

from pathlib import Path

import pytest
from refusing import refusing
from runtime.scripted import at_work, say, status_is
from runtime.weather import Calls, call, calling
from runtime.working import HELLO, SAYS, chat, deliver, results
from watchroom import Workspace
from watchroom.errors import JournalError

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize("word", ["pause_agent", "cancel_agent", "send_message"])
async def test_an_instruction_is_obeyed_once_the_journal_accepts_its_step(
    workspace: Workspace, root: Path, word: str
) -> None:
    async with workspace.sessions.begin("alice", chat(SAYS, SAYS), messages=HELLO) as session:
        given = {"to": "alice", "payload": {"text": "Stop."}}
        assert say(workspace, word, **given if word == "send_message" else {"agent_id": "alice"})["success"]
        deliver(workspace, session)
        with refusing(root, "NEW.zone = 'session' AND NEW.version > 1"):
            for _ in range(2):
                with pytest.raises(JournalError):
                    await session.run()
        async with at_work(session):
            ends = {"pause_agent": "paused", "cancel_agent": "cancelled", "send_message": "done"}
            await status_is(session, ends[word])
        assert [each.content for each in session.state.messages].count("Stop.") == (word == "send_message")


async def test_a_call_whose_start_was_refused_has_not_run(workspace: Workspace, root: Path) -> None:
    tool = Calls("ran")
    agent = chat(calling(call("tool")), SAYS, tools={"tool": tool})
    async with workspace.sessions.begin("alice", agent, messages=HELLO) as session:
        with refusing(root, "NEW.tool = 'tool_begins'"):
            assert (await session.run()).status == "error"
        assert tool.given == []
        await session.retry()
        assert results(await session.run())["call_1"] == "ran"
