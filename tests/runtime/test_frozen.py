"""A state is frozen to its depth: what an agent changed in it, no replay would know of."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from runtime.scripted import initial
from runtime.steps import raw
from watchroom import Workspace
from watchroom.features.requests.rows import Request
from watchroom.features.sessions.runtime import (
    AgentRuntime,
    AgentState,
    CallTool,
    Finish,
    Instruction,
    RequestHumanPrompt,
)
from watchroom.features.sessions.runtime.step_rows import (
    apply_encoded_step,
    decode_initial_state,
    encode_initial_state,
    encode_step,
)

GIVEN: Any = {"plan": {"steps": [1, {"of": "two"}]}, "tags": ["a"]}


def changes() -> dict[str, Callable[[Any], object]]:
    return {
        "a key": lambda data: data.__setitem__("plan", 1),
        "a key below": lambda data: data["plan"].update(steps=[]),
        "an element": lambda data: data["tags"].append("b"),
        "an element below": lambda data: data["plan"]["steps"][1].pop("of"),
        "a slice": lambda data: data["tags"].__setitem__(slice(0, 1), []),
        "an order": lambda data: data["tags"].sort(),
        "a key less": lambda data: data.__delitem__("tags"),
        "in place": lambda data: data.__ior__({"more": 1}),
        "default": lambda data: data.setdefault("more", 1),
        "all": lambda data: data["plan"].clear(),
    }


class Changing:
    """An agent that would change the state that it is given."""

    def __init__(self, change: Callable[[Any], object]) -> None:
        self.change = change
        self.tools: Any = {"tool": lambda arguments: GIVEN}

    def runner(self, state: AgentState) -> Instruction:
        self.change(state.metadata)
        return Finish()


@pytest.mark.parametrize("what", changes())
async def test_a_runner_cannot_change_what_the_replay_would_lose(workspace: Workspace, what: str) -> None:
    agent = Changing(changes()[what])
    async with workspace.sessions.begin("alice", agent, metadata=GIVEN) as session:
        state = await session.run()
    assert state.metadata == GIVEN
    assert state.error is not None
    assert "cannot be changed" in state.error.message
    rows = workspace.session_zone.history(session.path)
    replayed = decode_initial_state(rows[0].text)
    for row in rows[1:]:
        replayed = apply_encoded_step(replayed, row.text)
    assert replayed == state
    for change in changes().values():
        with pytest.raises(TypeError):
            change(replayed.metadata)


async def test_what_events_and_requests_carry_is_frozen_too() -> None:
    asks = RequestHumanPrompt(prompt="?", metadata=GIVEN)

    class Asking(Changing):
        def runner(self, state: AgentState) -> Instruction:
            return asks if state.events else CallTool(tool_call=raw("{}"))

    runtime = AgentRuntime(Asking(len))
    before = initial()
    ran = (await runtime.step(before)).new_state
    assert apply_encoded_step(before, encode_step(before, ran)) == ran
    asked = (await runtime.step(ran)).new_state
    assert asked.asked is not None
    again = apply_encoded_step(ran, encode_step(ran, asked))
    assert again == asked
    for found in (asks, ran.events[-1].result, asked.events[-1], asked.asked, again.asked, again.events[-1]):  # type: ignore[union-attr]
        data = found if isinstance(found, dict) else found.metadata  # type: ignore[union-attr]
        for change in changes().values():
            with pytest.raises(TypeError):
                change(data)


def test_what_is_frozen_can_be_copied_stored_and_compared() -> None:
    state = initial(metadata=GIVEN)
    assert (
        copy.deepcopy(state)
        == state
        == pickle.loads(pickle.dumps(state))
        == decode_initial_state(encode_initial_state(state))
    )
    assert initial().metadata == {}
    with pytest.raises(TypeError):
        changes()["default"](initial().metadata)
    assert Request("prompt", metadata=GIVEN) == Request("prompt", metadata=copy.deepcopy(GIVEN))
    dumped = state.model_dump(mode="json")["metadata"]
    dumped["plan"]["steps"].append("free again")
    assert state.metadata == GIVEN
