"""Whatever rows come, of every zone: a fold that was dumped and loaded goes on as the one that was not."""

from __future__ import annotations

import json
import random

import pytest
from evidence import all_rows
from memory_journal import MemoryJournal
from watchroom import Zone
from watchroom.features.buffers.rows import BufferRecord
from watchroom.features.overview.fold import Fold
from watchroom.model import Draft, Json, Note, Write

AGENTS = ("alice", "bob", "charlie")
CONFIG = "\n".join(f'[agents.{agent}]\nlayer = "top"\ntask = "t1"' for agent in AGENTS)


def some_draft(chance: random.Random, last: int) -> Draft:
    """The next draft, of any zone."""
    agent, other = chance.sample(AGENTS, 2)
    number = chance.randrange(4)
    session, command, task = f"{agent}/s{number}", f"t{number}/c{number}", f"t{number}"
    presence: dict[str, Json] = {"presence": f"lease{number}"}
    used: Json = {"input": 5, "cost": 0.25, "priced_by": "table", "model": f"m{number}"}
    status = chance.choice(("running", "error", "done", "waiting_for_human_input"))
    record = BufferRecord("collab", f"{number}.md", 1, 3, 1, chance.random() < 0.5, True, marks=(1, 2))
    seen: dict[str, Json] = {"need": chance.choice(("denied", "failed", "lost", "message")), "actor": agent}
    kinds: list[Draft] = [
        Write(agent, "step", "session", session, "x", detail={**presence, "status": status, "used": used}),
        Note(agent, "llm_stream", "session", session),
        Note(agent, "continue_session", "session", session, detail=presence),
        Note(agent, "message", "session", session, detail={"mail": last}),
        Note(agent, "call_llm", "session", session),
        Write(agent, "ask_person", "request", f"{session}/r{number}", "?", detail={"kind": "approve"}),
        Write(
            "system", "withdraw_request", "request", f"{session}/r{number}", "", detail={"outcome": "expired"}
        ),
        Write("human:eve", "begin_task", "task", task, "x"),
        Write("human:eve", "end_task", "task", task, None, detail={"status": "done"}),
        Write(
            agent,
            "spawn_agent",
            "agent",
            f"{task}-{agent}",
            "x",
            expected=0,
            detail={"layer": "bottom", "role": "", "parent": agent, "task": task},
        ),
        Write(agent, "terminate_agent", "agent", f"{task}-{agent}", "x", detail={"task": task}),
        Write(agent, "run_command", "command", command, "x", detail=presence),
        Note(agent, "command_output", "command", command, content="out"),
        Note(agent, "send_message", "agent", chance.choice(("user", other)), detail={"task": task}),
        Note("human:eve", "mark_as_seen", "workspace", "", detail={**seen, "row": last}),
        Write(agent, "open_buffer", "buffer", f"{agent}/b{number}", "abc", detail=record.detail()),
        Write(agent, "close_buffer", "buffer", f"{agent}/b{number}", None),
        Write(agent, "collab_write", "collab", f"{number}.md", "x", expected=chance.choice((-1, 0, 1))),
        Write(
            agent,
            "whiteboard_write",
            "board",
            f"bottom-layer-b{number}",
            "x",
            expected=chance.choice((-1, 0)),
        ),
        Write(agent, "lease_board", "lease", f"bottom-layer-b{number}", chance.choice(("x", None))),
        Write(agent, "realtime_edit", "realtime", f"d{number}", "x"),
        Write(agent, "handoff_file", "handoff", f"{agent}_to_{other}/{number}", "x"),
        Note(other, "acknowledge_handoff", "handoff", f"{agent}_to_{other}/{number}", base=1),
        Note(agent, "collab_read", "collab", "../x", "denied", "invalid_path"),
        Note("system", "process_lost", "workspace", f"lease{number}", "failed", "not_seen_alive"),
        Write("human:eve", "stop_agents", "workspace", "stopped", "", detail={"agents": {agent: last}}),
        Write("human:eve", "set_agents", "config", "config.toml", CONFIG),
    ]
    return chance.choice(kinds)


ZONES_MET: tuple[Zone, ...] = (
    "session",
    "request",
    "task",
    "agent",
    "command",
    "buffer",
    "realtime",
    "lease",
)


@pytest.mark.parametrize("seed", range(4))
def test_a_fold_of_rows_of_every_zone_can_be_dumped_and_loaded_anywhere(seed: int) -> None:
    chance, journal = random.Random(seed), MemoryJournal()
    journal.append([Write("human:eve", "set_agents", "config", "config.toml", CONFIG)])
    for _ in range(400):
        journal.append([some_draft(chance, journal.last_seq())])
    rows = all_rows(journal)
    assert {row.zone for row in rows} >= {*ZONES_MET}
    whole, fold = Fold(journal.content, journal.row), Fold(journal.content, journal.row)
    for start in range(0, len(rows), 40):
        for each in (whole, fold):
            each.apply(rows[start : start + 40])
        dumped = json.dumps(fold.dump())
        fold = Fold.load(journal.content, journal.row, json.loads(dumped))
        assert json.dumps(fold.dump()) == dumped
        assert fold.model() == whole.model()
    before = whole.model()
    assert before.tasks
    assert before.agents
    assert before.buffers
    assert before.messages
    assert before.commands
    assert before.usage.models
    assert before.needs
