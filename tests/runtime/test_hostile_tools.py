"""Whatever tools give, raise or are called with, a step ends with events and a whole state."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from runtime.scripted import Scripted, initial, kinds
from runtime.steps import raw, result_of, told, with_open
from runtime.weather import Calls, Model, call, calling, offered
from watchroom import Json
from watchroom.features.requests.rows import decide_all
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    CallTool,
    ChatAgent,
    Policies,
    RuntimeConfig,
)
from watchroom.features.sessions.runtime.transitions import apply_answer
from watchroom.texts import Language


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "given", [None, [], "", 0, False, {}, {"a": [1, 2.5, None, "x"]}, "\0", "\x1b[31m", {1: 2}]
)
async def test_any_json_is_a_result(given: Any) -> None:
    result = await result_of(Calls(given))
    assert kinds(result) == ["tool_result"]
    assert told(result) == json.loads(json.dumps(given))


@pytest.mark.parametrize(
    "given", [float("nan"), float("inf"), b"bytes", object(), {("a",): 1}, circular(), nested]
)
async def test_a_result_that_is_no_json_is_a_failure_that_the_model_is_told(given: Any) -> None:
    # Only where it is tried: it is large, and each process that collects the tests would make it.
    result = await result_of(Calls(nested(100_000) if given is nested else given))
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "tool_failed"
    assert result.new_state.status == "running"


@pytest.mark.parametrize("depth", [10, 200, 400, 900])
async def test_a_deep_result_is_taken_or_refused_but_its_call_is_over(depth: int) -> None:
    given = told(await result_of(Calls(nested(depth))))
    assert given == nested(depth) or given["error"] == "tool_failed"


async def test_half_characters_in_a_result_are_replaced() -> None:
    result = await result_of(Calls({"text": "half \ud83d of one", "\udc00": 1}))
    assert told(result) == {"text": "half \ufffd of one", "\ufffd": 1}
    assert AgentState.model_validate_json(result.new_state.model_dump_json()) == result.new_state


async def test_a_result_that_is_too_large_to_keep_is_refused() -> None:
    result = await result_of(Calls("x" * (10 * 1024 * 1024 + 1)))
    assert told(result)["error"] == "too_large"


class Panic(BaseException):
    """As some extension modules raise."""


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        SystemExit(2),
        asyncio.CancelledError(),
        TimeoutError(),
        Panic("loud"),
        StopIteration(1),
    ],
)
async def test_a_tool_in_its_thread_may_raise_anything(error: BaseException) -> None:
    def tool(arguments: Mapping[str, Json]) -> Json:
        raise error

    result = await result_of(tool)
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "tool_failed"
    assert result.new_state.status == "running"


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError(), TimeoutError()])
async def test_an_asynchronous_tool_may_raise_what_is_no_end_of_the_program(error: BaseException) -> None:
    async def tool(arguments: Mapping[str, Json]) -> Json:
        raise error

    result = await result_of(tool)
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "tool_failed"
    assert result.new_state.status == "running"


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    tool = Calls()
    await result_of(tool, raw(arguments))
    assert tool.given == [{}]


@pytest.mark.parametrize(
    "arguments",
    [
        "null",
        "[]",
        "1",
        '"text"',
        "{",
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": Infinity}',
        "[" * 100_000,
        "9" * 5000,
        '{"a": ' + "[" * 100 + "]" * 100 + "}",
        '{"a": ' + "[" * 987 + "]" * 987 + "}",
    ],
)
async def test_arguments_that_are_no_object_or_too_deep_run_nothing(arguments: str) -> None:
    tool = Calls()
    result = await result_of(tool, raw(arguments))
    assert kinds(result) == ["error"]
    assert told(result)["error"] == "invalid_tool_arguments"
    assert tool.given == []


@pytest.mark.parametrize(
    ("language", "message"),
    [
        ("en", 'The arguments of tool are not a JSON object: ["half \\ud83d of one", 7].'),
        ("zh", 'tool 的参数不是 JSON 对象：["half \\ud83d of one", 7]。'),
    ],
)
async def test_what_came_instead_of_an_object_is_told_in_the_language_of_the_model(
    language: Language, message: str
) -> None:
    asked = raw('["half \ud83d of one", 7]')
    agent = Scripted(CallTool(tool_call=asked), tools={"tool": Calls()})
    result = await AgentRuntime(agent, RuntimeConfig(language=language)).step(with_open(asked))
    assert told(result)["message"] == message
    assert message in json.loads(result.events[0].model_dump_json())["error"]["message"]


@pytest.mark.parametrize(
    "arguments", ['{"city": "half \\ud83d"}', '{"city": "\\udc00\\ud800"}', '{"n": 1e999}']
)
async def test_edited_arguments_are_told_as_they_were_run(arguments: str) -> None:
    model = Model(calling(call("tool")))
    agent = ChatAgent(offered({"tool": Calls(7)}), model_runtime=model, policies=Policies(default="ask"))
    runtime = AgentRuntime(agent)
    state = initial()
    for _ in range(2):
        state = (await runtime.step(state)).new_state
    assert state.asked is not None
    edit = decide_all(state.asked, approved=True, edited={"call_1": arguments})
    result = await runtime.step(apply_answer(state, edit, "human:dana").new_state)
    assert kinds(result) == ["tool_result"]
    assert told(result) == {"edited_arguments": json.loads(arguments), "result": 7}


async def test_the_model_is_told_of_an_edit_when_the_call_fails_too() -> None:
    model = Model(calling(call("tool", city="Bonn")))
    tool = Calls(ValueError("no such city"))
    agent = ChatAgent(offered({"tool": tool}), model_runtime=model, policies=Policies(default="ask"))
    runtime = AgentRuntime(agent)
    state = initial()
    for _ in range(2):
        state = (await runtime.step(state)).new_state
    assert state.asked is not None
    edit = decide_all(state.asked, approved=True, edited={"call_1": '{"city": "Köln"}'})
    result = await runtime.step(apply_answer(state, edit, "human:dana").new_state)
    assert told(result)["edited_arguments"] == {"city": "Köln"}
    assert told(result)["result"]["error"] == "tool_failed"


async def test_tools_that_are_not_asynchronous_do_not_wait_for_each_other() -> None:
    """However many hang, the next one runs."""
    together = threading.Barrier(50, timeout=20)

    def tool(arguments: Mapping[str, Json]) -> Json:
        together.wait()
        return "met"

    results = await asyncio.gather(*(result_of(tool) for _ in range(50)))
    assert {told(result) for result in results} == {"met"}


async def test_a_cancellation_is_raised_and_nothing_else_is() -> None:
    began = asyncio.Event()

    async def silent(arguments: Mapping[str, Json]) -> Json:
        began.set()
        return await asyncio.Event().wait()

    step = asyncio.create_task(result_of(silent))
    await began.wait()
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step


def test_a_tool_that_never_ends_does_not_keep_the_program() -> None:
    program = """
import asyncio, threading
from watchroom.features.sessions.runtime import *

class One:
    tools = {"hangs": lambda arguments: threading.Event().wait()}
    def runner(self, state):
        return CallTool(tool_call=ToolCall(id="c", function=Function(name="hangs", arguments="")))

runtime = AgentRuntime(One(), RuntimeConfig(limits=Limits(seconds=0.05)))
result = asyncio.run(runtime.step(create_initial_state(session_id="s")))
print(result.new_state.error.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.strip() == "limit_reached"


def test_tools_run_in_a_process_that_was_forked_too() -> None:
    program = """
import asyncio, os
from watchroom.features.sessions.runtime import *

class One:
    tools = {"tool": lambda arguments: "ran"}
    def runner(self, state):
        return CallTool(tool_call=ToolCall(id="c", function=Function(name="tool", arguments="")))

def run():
    result = asyncio.run(AgentRuntime(One()).step(create_initial_state(session_id="s")))
    os.write(1, f"{result.new_state.messages[-1].content}\\n".encode())

run()
child = os.fork()
run()
if child:
    os.waitpid(child, 0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ['"ran"'] * 3
