"""A row of every kind that a journal finds by something else than its path, and by what."""

from __future__ import annotations

from typing import Final

from watchroom.kernel.journal import topics
from watchroom.model import Draft, Note, Write, Zone

OF_EVERY_KIND: Final[tuple[Draft, ...]] = (
    Write("alice", "begin_session", "session", "alice/s1", "{}", detail={"status": "idle"}),
    Write("alice", "call_tool", "session", "alice/s1", "{}", detail={"status": "done"}),
    Note("alice", "llm_stream", "session", "alice/s1", content="Well"),
    Note("human:dana", "pause_agent", "session", "alice"),
    Note("human:dana", "send_message", "session", "alice/s1", content="Hello"),
    Note("human:dana", "pause_agent", "session", "alice", "denied", "unknown_agent"),
    Note("alice", "send_message", "agent", "bob", content="Hi", detail={"task": "t1", "call": "s1/1/0"}),
    Write("alice", "handoff_file", "handoff", "alice_to_bob/read_to_do.md", "x", detail={"call": "s1/1/1"}),
    Write("alice", "handoff_file", "handoff", "alice_to_bob/new.md", "x"),
    Note("bob", "acknowledge_handoff", "handoff", "alice_to_bob/read_to_do.md", base=1),
    Write("carol", "handoff_file", "handoff", "carol_to_bob/again.md", "x"),
    Note("bob", "acknowledge_handoff", "handoff", "carol_to_bob/again.md", base=1),
    Write("carol", "handoff_file", "handoff", "carol_to_bob/again.md", "y"),
    Write("carol", "handoff_file", "handoff", "carol_to_bob/late.md", "x"),
    Write("carol", "handoff_file", "handoff", "carol_to_bob/late.md", "y"),
    Note("bob", "acknowledge_handoff", "handoff", "carol_to_bob/late.md", base=1),
    Note("alice", "acknowledge_handoff", "handoff", "carol_to_bob/late.md", base=2),
    Write("alice", "open_buffer", "buffer", "alice/plan", "x"),
    Write("alice", "open_buffer", "buffer", "alice/page", "x"),
    Write("alice", "close_buffer", "buffer", "alice/page", None),
    Write("human:dana", "submit_requirement", "task", "t1", "{}"),
    Write("human:dana", "submit_requirement", "task", "t2", "{}"),
    Write("human:dana", "end_task", "task", "t2", "done"),
    Write("human:dana", "spawn_agent", "agent", "root", "Build.", detail={"task": "t1", "parent": ""}),
    Write("root", "spawn_agent", "agent", "tester", "Test.", detail={"task": "t1", "parent": "root"}),
    Write("root", "terminate_agent", "agent", "tester", "", detail={"task": "t1"}),
    Write("root", "spawn_agent", "agent", "stray", "Stray."),
    Write("root", "run_command", "command", "t1/ended", "make"),
    Write("root", "end_command", "command", "t1/ended", "{}"),
    Write("root", "run_command", "command", "t1/running", "make"),
    Write("alice", "whiteboard_update_section", "board", "global", "x", detail={"section": "A: b\nc"}),
    Write("alice", "collab_write", "collab", "plan.md", "x", expected=7, detail={"call": "s1/2/0"}),
    Note("outside", "outside_edit", "collab", "plan.md", "conflict", "outside_edit", content="z"),
    Write("outside", "outside_edit", "private", "alice/a.md", "z"),
    Note("human:dana", "dismiss_conflict", "collab", "plan.md", detail={"conflict": 1, "note": '"call": 5'}),
    Note("bob", "read_handoff", "handoff", "alice_to_bob/new.md", base=1),
)
TOPICS: Final[dict[str, list[str]]] = {
    topics.messages_to("session", "alice"): ["pause_agent"],
    topics.messages_to("session", "alice/s1"): ["send_message"],
    topics.messages_to("agent", "bob"): ["send_message"],
    topics.steps_of("alice"): ["call_tool", "begin_session"],
    topics.deliveries_to("bob"): [
        "handoff_file",
        "handoff_file",
        "handoff_file",
        "handoff_file",
        "handoff_file",
        "handoff_file",
    ],
    topics.section_written_by("alice", "global", "A: b\nc"): ["whiteboard_update_section"],
    topics.outside_edits_of("collab", "plan.md"): ["outside_edit"],
    topics.outside_edits_of("private", "alice/a.md"): [],
    topics.SETTLED: ["dismiss_conflict"],
}
OPEN: Final[dict[tuple[Zone, str], list[str]]] = {
    ("handoff", "bob"): ["alice_to_bob/new.md", "carol_to_bob/again.md", "carol_to_bob/late.md"],
    ("buffer", "alice"): ["alice/plan"],
    ("task", ""): ["t1"],
    ("agent", "t1"): ["root", "tester"],
    ("command", "t1"): ["t1/running"],
    ("agent", ""): ["stray"],
}
