"""Messages to an agent without a session come with the result of its next call."""

from __future__ import annotations

from calls import ok
from mcp.types import TextContent
from serving.clients import over_http, serving
from watchroom import Toolbox, Workspace
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted
from watchroom.agents.clients.session import ClientSession
from watchroom.model import MESSAGE, Note


async def test_messages_come_once_with_the_result_of_a_call(workspace: Workspace) -> None:
    message = Note("bob", MESSAGE, "agent", "alice", content="The tests pass.\nAll of them.")
    workspace.journal.append([message])
    token = workspace.access.create("human:dana", "alice")
    with serving(workspace) as url:
        async with over_http(url, token) as client:
            texts = []
            for _ in range(2):
                result = await client.call_tool("collab_list", {})
                assert result.structured_content is not None
                texts.append([each.text for each in result.content if isinstance(each, TextContent)])
            assert [len(each) for each in texts] == [2, 1]
            assert texts[0][0] == "- bob writes: The tests pass.\n  All of them."
            # A session that goes on gets them itself.
            ClientSession(workspace, "alice", "s1", ClientInfo("claude")).record(PromptSubmitted("Go"))
            workspace.journal.append([message])
            result = await client.call_tool("collab_list", {})
            assert len(result.content) == 1
    assert len(workspace.messages.find_waiting("alice/s1")) == 1


async def test_an_overlap_of_plans_comes_with_the_next_result_of_the_earlier_planner(
    workspace: Workspace, bob: Toolbox
) -> None:
    with serving(workspace) as url:
        async with over_http(url, workspace.access.create("human:dana", "alice")) as client:
            assert not (await client.call_tool("declare_plan", {"paths": ["src/api/**"]})).is_error
            ok(bob, "declare_plan", paths=["src/api/users.py"], intent="fix a bug")
            texts = [
                [each.text for each in result.content if isinstance(each, TextContent)]
                for result in [await client.call_tool("collab_list", {}) for _ in range(2)]
            ]
    assert [len(each) for each in texts] == [2, 1]
    assert "bob also plans to change files that you plan to change: src/api/users.py" in texts[0][0]
