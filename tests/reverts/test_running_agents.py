"""An agent that is at work is paused first, and nothing that it was just doing is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from calls import ok
from reverts.test_reverts import ANN
from runtime.scripted import at_work, status_is, until
from runtime.weather import call, calling, offered
from runtime.working import HELLO
from watchroom import Workspace
from watchroom.features.reverts.rules import RevertSelection
from watchroom.features.sessions.runtime import ChatAgent, ModelPayload, RuntimeConfig
from watchroom.features.sessions.runtime.agent import Limits
from watchroom.kernel.call_context import CallContext


class Writing:
    """A model that has a file written again and again, each time another one."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        self.asked += 1
        for chunk in calling(call("tool", f"c{self.asked}"), content=f"Turn {self.asked}."):
            yield chunk


async def test_nothing_of_an_agent_at_work_is_left(workspace: Workspace) -> None:
    alice, model = workspace.tools("alice"), Writing()

    def write(arguments: object) -> str:
        name = f"junk/{model.asked}.md"
        ok(alice, "collab_write", filepath=name, content="x", message="m", expected_version=0)
        return "written"

    agent = ChatAgent(offered({"tool": write}), model_runtime=model)
    config = RuntimeConfig(limits=Limits(steps=None))
    async with (
        workspace.sessions.begin("alice", agent, config, messages=HELLO) as session,
        at_work(session),
    ):
        await until(lambda: len(list(workspace.journal.heads("collab"))) >= 3)
        await asyncio.to_thread(workspace.reverts.apply, CallContext(ANN), RevertSelection(("alice",)))
        await status_is(session, "paused")
        assert [head.path for head in workspace.journal.heads("collab") if not head.deleted] == []
        assert workspace.verify() == []
