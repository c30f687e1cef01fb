"""Agents' sessions: many at once in one process, and what a step costs when a session has grown long."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Final

from measure import Measure, Rounds, middle, ratio, scratch
from watchroom import Workspace
from watchroom.runtime import (
    AgentRuntime,
    AgentState,
    ChatAgent,
    Limits,
    ModelPayload,
    RuntimeConfig,
    Session,
    create_initial_state,
    tool,
)
from watchroom.toolbox.agent_tools import agent_tools

AT_ONCE: Final = 200
TURNS: Final = 10
"""Of each of them: an answer that calls a tool, and the call."""
EARLY: Final = 10
LATE: Final = 1000
ENDLESS: Final = RuntimeConfig(limits=Limits(steps=None))
ROUNDS: Final = 15
BURST: Final = 10
"""So many steps are timed in one go, an even number: answers and calls take turns."""
HELLO: Final = ({"role": "user", "content": "Keep a diary."},)


def measure() -> list[Measure]:
    return [*_many(), *_long()]


class Diarist:
    """A simulated model that writes a line into the diary of its session in each of its turns."""

    def __init__(self, name: str, turns: int | None = None) -> None:
        self._name = name
        self._turns = turns
        self._turn = 0

    async def __call__(self, payload: ModelPayload) -> AsyncIterator[Mapping[str, object]]:
        turn = self._turn
        self._turn += 1
        for word in ("Dear ", "diary, ", "today "):
            yield {"content": word}
        if turn == self._turns:
            return
        arguments = {"filename": f"{self._name}.md", "content": f"Entry {turn}.\n"}
        function = {"name": "save_to_my_workspace", "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"{self._name}-{turn}", "function": function}
        yield {"tool_calls": [call], "usage": {"input_tokens": 100, "output_tokens": 10}}


def _many() -> list[Measure]:
    """In a process of its own, whose memory tells what sessions need."""
    with scratch() as folder:
        command = [sys.executable, __file__, os.path.join(folder, "team")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    what = f"{AT_ONCE} sessions at once"
    return [
        Measure(
            f"{what}: steps per second", told["steps"] / told["seconds"], "/s", remark="each a durable row"
        ),
        Measure(f"{what}: memory of the process before", told["before"] / 2**20, "MB"),
        Measure(f"{what}: memory a session", (told["after"] - told["before"]) / AT_ONCE / 1024, "KB"),
    ]


async def _run_many(root: str) -> dict[str, float]:
    def resident() -> int:
        import psutil

        gc.collect()
        return int(psutil.Process().memory_info().rss)

    names = [f"diarist-{n}" for n in range(AT_ONCE)]
    with Workspace.open(root, agents=names) as workspace:

        async def one(name: str) -> AgentState:
            tools = agent_tools(workspace.tools(name), toolsets=["private"])
            agent = ChatAgent(tools, model_runtime=Diarist(name, TURNS))
            async with workspace.sessions.begin(name, agent, messages=HELLO) as session:
                return await session.run()

        await one(names[0])
        before = resident()
        began = time.perf_counter()
        states = await asyncio.gather(*map(one, names))
        seconds = time.perf_counter() - began
        after = resident()
        return {
            "steps": sum(state.step_count for state in states),
            "seconds": seconds,
            "before": before,
            "after": after,
        }


def _long() -> list[Measure]:
    measures = []
    for name, rounds in (
        ("in memory", asyncio.run(_in_memory())),
        ("journalled", asyncio.run(_journalled())),
    ):
        early, late = rounds["early"], rounds["late"]
        measures += [
            Measure(f"a step {name}: step {EARLY}", middle(early) * 1e3, "ms"),
            Measure(f"a step {name}: step {LATE:,} against step {EARLY}", ratio(late, early), "×", 1.5),
        ]
    return measures


async def _in_memory() -> Rounds:
    """The runtime alone. States do not change, so each round begins at the same."""

    @tool
    def save_to_my_workspace(filename: str, content: str) -> str:
        """Save a file."""
        return "noted"

    runtime = AgentRuntime(ChatAgent([save_to_my_workspace], model_runtime=Diarist("memory")), ENDLESS)
    state = create_initial_state(session_id="memory", messages=HELLO)
    states: dict[str, AgentState] = {}
    for step in range(LATE):
        if step == EARLY:
            states["early"] = state
        state = (await runtime.step(state)).new_state
    states["late"] = state
    rounds: Rounds = {name: [] for name in states}
    for turn in range(ROUNDS):
        for name in _in_turn(states, turn):
            state = states[name]
            began = time.perf_counter()
            for _ in range(BURST):
                state = (await runtime.step(state)).new_state
            rounds[name].append([(time.perf_counter() - began) / BURST])
    return rounds


async def _journalled() -> Rounds:
    """A session with its rows. A new young one for each round: it grows with each step."""
    rounds: Rounds = {"early": [], "late": []}
    with scratch() as folder, Workspace.open(os.path.join(folder, "team"), agents=["diarist"]) as workspace:

        def agent(name: str) -> ChatAgent:
            tools = agent_tools(workspace.tools("diarist"), toolsets=["private"])
            return ChatAgent(tools, model_runtime=Diarist(name))

        async def step(session: Session, count: int) -> float:
            began = time.perf_counter()
            for _ in range(count):
                await session.step()
            return (time.perf_counter() - began) / count

        async with workspace.sessions.begin("diarist", agent("late"), ENDLESS, messages=HELLO) as long:
            await step(long, LATE)
            for turn in range(ROUNDS):
                name = f"early-{turn}"
                async with workspace.sessions.begin("diarist", agent(name), messages=HELLO) as short:
                    await step(short, EARLY)
                    sessions = {"early": short, "late": long}
                    for which in _in_turn(sessions, turn):
                        rounds[which].append([await step(sessions[which], BURST)])
    return rounds


def _in_turn(names: Mapping[str, object], turn: int) -> list[str]:
    return sorted(names, reverse=bool(turn % 2))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_run_many(sys.argv[1]))))
