"""The page on running agents, tried as it is written."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import sys
from pathlib import Path

import pytest
from cli.running import as_typed
from runtime.models.server import Exchange, serving
from watchroom import Workspace

PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
PATIENCE = 60


def event(**delta: object) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"


END = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


ARGUMENTS = {"filepath": "plan.md", "content": "# Plan\n", "message": "first", "expected_version": 0}
CALL = {
    "index": 0,
    "id": "c1",
    "type": "function",
    "function": {"name": "collab_write", "arguments": json.dumps(ARGUMENTS)},
}


async def is_done(exchange: Exchange) -> None:
    await exchange.answer(event(content="The plan is written.") + END)


async def run(*command: str, cwd: Path, **environment: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, stdout=asyncio.subprocess.PIPE, env={**os.environ, **environment}
    )
    out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0
    return out.decode()


async def test_the_first_example_runs_and_its_call_is_approved_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "alice.py").write_text(EXAMPLES[0], encoding="utf-8")
    asked = asyncio.Event()

    async def wants_to_write(exchange: Exchange) -> None:
        asked.set()
        await exchange.answer(event(content="I write it.") + event(tool_calls=[CALL]) + END)

    async with serving(wants_to_write, is_done) as server:
        agent = asyncio.create_task(
            run(sys.executable, "alice.py", "Write a plan.", cwd=tmp_path, MODEL_URL=server.url, MODEL="m")
        )
        await asyncio.wait_for(asked.wait(), PATIENCE)
        requests: list[dict[str, object]] = []
        while not requests:
            assert not agent.done(), agent.result()
            requests = json.loads(await run(*as_typed("show", "team/", "requests", "--json"), cwd=tmp_path))
        number = str(requests[0]["request"])
        assert "+ # Plan" in await run(*as_typed("answer", "team/", number), cwd=tmp_path)
        await run(*as_typed("answer", "team/", number, "--approve"), cwd=tmp_path)
        assert (await agent).strip() == "done: The plan is written."
    with Workspace.open(tmp_path / "team", create=False) as workspace:
        assert workspace.journal.head("collab", "plan.md") is not None


async def test_a_tool_of_ones_own_runs_once_a_person_has_approved_of_it(tmp_path: Path) -> None:
    (example,) = [each for each in EXAMPLES if "@tool\n" in each]
    call = {"name": "send_invoice", "arguments": '{"customer": "ACME", "euros": 12}'}
    asked, told = asyncio.Event(), list[object]()

    async def wants_to_bill(exchange: Exchange) -> None:
        asked.set()
        (offered,) = exchange.request.json()["tools"]
        assert offered["function"]["parameters"]["properties"]["euros"] == {"type": "number"}
        await exchange.answer(event(tool_calls=[{**CALL, "function": call}]) + END)

    async def has_billed(exchange: Exchange) -> None:
        told.append(exchange.request.json()["messages"][-1]["content"])
        await exchange.answer(event(content="ACME has its invoice.") + END)

    async with serving(wants_to_bill, has_billed) as server:
        program = example.replace("http://localhost:11434/v1", server.url)
        assert server.url in program
        (tmp_path / "invoices.py").write_text(program, encoding="utf-8")
        agent = asyncio.create_task(run(sys.executable, "invoices.py", cwd=tmp_path))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        requests: list[dict[str, object]] = []
        while not requests:
            assert not agent.done(), agent.result()
            requests = json.loads(await run(*as_typed("show", "team/", "requests", "--json"), cwd=tmp_path))
        assert told == []
        await run(*as_typed("answer", "team/", str(requests[0]["request"]), "--approve"), cwd=tmp_path)
        assert (await agent).strip() == "ACME has its invoice."
    assert told == ['"ACME was billed 12.00 euros."']


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_imports_only_what_there_is(number: int) -> None:
    for node in ast.walk(ast.parse(EXAMPLES[number])):
        if isinstance(node, ast.ImportFrom):
            exec(compile(ast.Module([node], []), "docs/agents.md", "exec"), {})
