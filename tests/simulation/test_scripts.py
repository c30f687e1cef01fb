"""What an agent does is decided by the seed and by what it is told, and by nothing else."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from simulation.playing import scenario_from
from watchroom import Json
from watchroom.agents.simulation import Scenario, demo
from watchroom.agents.simulation.model_agent import ScriptedModel
from watchroom.agents.simulation.player import RequestQueue
from watchroom.agents.simulation.scenario import WaitFor
from watchroom.agents.simulation.script import Heard, Move, Play
from watchroom.features.config.rows import Agent
from watchroom.features.sessions.runtime import (
    AssistantMessage,
    Message,
    ModelPayload,
    ToolMessage,
    UserMessage,
)
from watchroom.features.sessions.runtime.models import Reply

ADA = Agent("ada", "writer")


def moves(play: Play, routine: str, results: list[dict[str, Json]]) -> list[Move]:
    """What is said and done, where the calls give these results, one after the other, then always the last."""
    script = play.script(routine)
    taken: list[Move] = []
    step = next(script)
    while True:
        if isinstance(step, WaitFor):
            step = script.send(Heard())
            continue
        taken.append(step)
        if not step.tool:
            return taken
        step = script.send(Heard(results.pop(0) if len(results) > 1 else results[0]))


def one(path: Path, steps: str, more: str = "") -> Scenario:
    return scenario_from(
        path / "one.toml", f'name = "one"\n[[agent]]\nid = "ada"\n[routine.go]\nsteps = [{steps}]\n{more}'
    )


def test_the_same_seed_decides_the_same() -> None:
    scenario, agents = demo(), demo().roster(6)
    found: dict[str, Json] = {"success": True, "content": 'value:.12g "division by zero"', "version": 2}

    def decided(seed: int) -> list[list[Move]]:
        return [
            moves(Play(scenario, agents[1], agents, seed=seed, number=number), routine, [found])
            for number in range(5)
            for routine in ("update-plan", "note", "review-module", "sprint", "own-board")
        ]

    assert decided(1) == decided(1)
    assert decided(1) != decided(2)


def test_a_conflict_is_tried_again_from_the_current_text(tmp_path: Path) -> None:
    scenario = one(
        tmp_path,
        '{ call = "collab_write", args = { filepath = "a", content = { edit = "${old.content}", add = "- mine" },'
        ' message = "m", expected_version = "${old.version}" }, retry = "old", tries = 2 }',
        '[texts]\ngave_up = "People decide."\nagain = "Once more."\ndone = "Done."',
    )
    conflict: dict[str, Json] = {
        "success": False,
        "error": "version_conflict",
        "is_conflict": True,
        "current_content": "- theirs\n",
        "current_version": 4,
    }
    first, again, last = moves(Play(scenario, ADA), "go", [conflict, {"success": True}])
    assert first.arguments["content"] == "\n- mine\n"
    assert again.arguments["content"] == "- theirs\n- mine\n"
    assert again.arguments["expected_version"] == 4
    assert (again.say, last.say) == ("Once more.", "Done.")
    left = moves(Play(scenario, ADA), "go", [conflict])
    assert (len(left), left[-1].say) == (4, "People decide.")


def test_a_call_that_failed_ends_the_routine_unless_the_step_says_otherwise(tmp_path: Path) -> None:
    failed: dict[str, Json] = {"success": False, "error": "file_not_found", "message": "There is none."}
    more = '[routine.mend]\nsteps = [{ call = "check_my_handoffs" }]\n[texts]\nrefused = "Oh: ${problem}"'
    read = '{ call = "collab_read", args = { filepath = "a" }%s }, { call = "collab_list" }'

    def tools(how: str) -> list[str]:
        return [move.tool for move in moves(Play(one(tmp_path, read % how, more), ADA), "go", [failed])]

    assert tools("") == ["collab_read", ""]
    assert tools(', on_error = "continue"') == ["collab_read", "collab_list", ""]
    assert tools(', on_error = { file_not_found = "mend" }') == ["collab_read", "check_my_handoffs", ""]
    assert tools(', again_on = ["file_not_found"]') == ["collab_read", "collab_read", ""]
    assert moves(Play(one(tmp_path, read % "", more), ADA), "go", [failed])[-1].say == "Oh: There is none."


def test_lists_conditions_and_routines_within_routines(tmp_path: Path) -> None:
    scenario = one(
        tmp_path,
        '{ call = "collab_list", as = "found", repeat = 2 }, { play = "read", each = "${found.files}" },'
        '{ unless = "${found.files}", stop = true }, { when = "${me} == eve", call = "collab_list" },'
        '{ chance = 0, call = "collab_list" }, { play = "read", with = { path = "last" } }',
        '[routine.read]\nsteps = [{ when = "${item} == b", stop = true },'
        '{ call = "collab_read", args = { filepath = "${item}${path}" } }]',
    )
    given: dict[str, Json] = {"success": True, "files": ["a", "b", "c"]}
    assert [
        move.arguments.get("filepath", move.tool) for move in moves(Play(scenario, ADA), "go", [given])
    ] == [
        *("collab_list", "collab_list", "a", "c", "last", ""),
    ]


async def test_a_session_goes_on_where_it_was_and_answers_people(tmp_path: Path) -> None:
    scenario = scenario_from(
        tmp_path / "one.toml",
        'name = "one"\non_message = "heed"\n[[agent]]\nid = "ada"\n[routine.heed]\n'
        'steps = [{ call = "whiteboard_append", args = { board = "global", content = "${who}: ${said}" } }]\n'
        '[routine.go]\nsteps = [{ call = "collab_list", repeat = 9, say = "${number.1.999}" }]\n',
    )

    def model() -> ScriptedModel:
        return ScriptedModel(partial(Play(scenario, ADA, seed=5).script, "go"))

    async def said(messages: list[Message], *models: ScriptedModel) -> Reply:
        replies = [await each(ModelPayload(messages=tuple(messages))) for each in models]
        assert replies == replies[:1] * len(replies), "whoever takes the session up says the same"
        (reply, *_) = replies
        number = str(len(messages))
        calls = [
            {"id": number, "function": {"name": name, "arguments": json.dumps(given)}}
            for name, given in reply.calls
        ]
        messages.append(AssistantMessage.model_validate({"content": reply.text, "tool_calls": calls}))
        if reply.calls:
            messages.append(ToolMessage(tool_call_id=number, content='{"success": true}'))
        return reply

    steady, messages = model(), list[Message]([UserMessage(content="Go")])
    for _ in range(3):
        assert (await said(messages, steady, model(), steady)).calls[0][0] == "collab_list"
    messages.append(UserMessage(content="Stop\nthat", author="human:dana"))
    reply = await said(messages, steady, model())
    assert reply.calls == (("whiteboard_append", {"board": "global", "content": "dana: Stop that"}),)
    for _ in range(6):
        assert (await said(messages, steady, model())).calls[0][0] == "collab_list"
    assert (await said(messages, steady, model())).calls == ()


def test_what_people_changed_in_a_call_is_its_result(tmp_path: Path) -> None:
    from watchroom.agents.simulation.model_agent import result_of

    content = json.dumps({"edited_arguments": {"a": 1}, "result": {"success": True, "version": 3}})
    assert result_of(content) == {"success": True, "version": 3, "edited": {"a": 1}}
    told = '{"notice": "Well done.", "result": {"success": true, "version": 3}}'
    assert result_of(told) == {"success": True, "version": 3}
    assert result_of("[1]") == {"success": True, "result": [1]}


def test_requests_come_in_turn_and_never_too_many_at_once() -> None:
    now = [0.0]
    queue = RequestQueue(demo(), lambda: now[0])
    agents = [agent.id for agent in demo().roster(6)]
    assert not any(map(queue.take, agents))
    now[0] = 300.0
    taken = [queue.take(agent) for agent in agents]
    assert len([each for each in taken if each]) == demo().open_requests == 3
    for agent in agents:
        queue.end(agent)
    seen = {each for each in taken if each}
    while len(seen) < len(demo().requests):
        now[0] += 10
        for agent in agents:
            seen.add(queue.take(agent))
            queue.end(agent)
        seen.discard("")
        assert now[0] < 3000


def test_no_request_of_the_demo_can_expire_in_its_first_five_minutes() -> None:
    assert demo().answer_within >= 300
