"""Reports of clients: hook events and transcripts of Claude Code and Codex, and updates of the Agent Client
Protocol."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final, Self

from watchroom.agents.clients.acp import AcpTranslator
from watchroom.agents.clients.attachment import Attachment
from watchroom.errors import WatchroomError
from watchroom.model import Json

from reliability.fuzzing.async_target import AsyncTarget
from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.mutation import (
    HOSTILE,
    NUMBERS,
    mutated,
    mutated_json,
    some_json,
    some_text,
    to_bytes,
)
from reliability.fuzzing.oracle import check_sendable, refusal_kind, require

_HOLD_SECONDS: Final = 0.02
_EVENTS: Final = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
    *(
        "PermissionRequest",
        "MessageDisplay",
        "Stop",
        "SubagentStop",
        "SessionEnd",
        "PostModelRequest",
        "Interrupt",
    ),
)
_TOOLS: Final = ("Bash", "Write", "Edit", "apply_patch", "mcp__watchroom__collab_read", "NotebookEdit", "")
_PATHS: Final = (
    *(
        "agents/bob/x.md",
        "agents/alice/x.md",
        "collaborative/current/plan.md",
        "../x",
        ".watchroom/journal.db",
    ),
    *("/etc/passwd", "~root/x", "a/../../b", "realtime/.crdt_state/doc.crdt.json", "x\0y"),
)
_POLICY: Final = """
[[policy.rules]]
path = "agents/**"
verdict = "ask"
[[policy.rules]]
command = "rm *"
verdict = "deny"
"""
_LEAVES: Final[Sequence[Json]] = (
    *(*_EVENTS, *_TOOLS, *_PATHS, "s1", "s2", "t1", "t2", "\ud800", *HOSTILE, *NUMBERS),
    10**400,
    {"command": "rm -rf /"},
    {"input": "*** Begin Patch\n*** Update File: agents/bob/x.md\n*** Move to: collaborative/current/y\n"},
    {"input_tokens": 5, "output_tokens": 10**30},
    {"type": "text", "text": "x"},
    {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
    [],
    {},
)
_LINES: Final[Sequence[Json]] = (
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "model": "opus",
            "content": [{"type": "text", "text": "hello"}],
            "usage": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 1},
        },
    },
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "id": "m2",
            "content": [{"type": "output_text", "text": "x"}],
        },
    },
)


class HookEvents(AsyncTarget):
    """Checks that each hook event and each transcript line is answered, or refused with a code."""

    name = "hooks"
    period = 3000

    async def begin(self) -> None:
        self._write_policy()
        clients: Sequence[tuple[str, str, bool]] = (("claude", "alice", False), ("codex", "bob", True))
        self._attachments = {
            client: Attachment(
                self.workspace, agent, client, is_owner=True, is_strict=is_strict, hold_seconds=_HOLD_SECONDS
            )
            for client, agent, is_strict in clients
        }

    def _write_policy(self) -> None:
        config = Path(self.workspace.root, ".watchroom", "config.toml")
        config.write_text(config.read_text() + _POLICY)
        self.workspace.scan()

    async def end(self) -> None:
        """Nothing to release."""

    def generate(self, chance: Random) -> bytes:
        """Return ``c`` or ``x`` for the client, ``h`` or ``l`` for a hook or a line, and the event."""
        kind = chance.choice((b"c", b"x"))
        if chance.random() < 0.2:
            return kind + b"l" + to_bytes(chance.choice(_LINES))
        event: dict[str, Json] = {
            "hook_event_name": chance.choice(_EVENTS),
            "session_id": chance.choice(("s1", "s1", "s2", some_text(chance))),
            "tool_name": chance.choice(_TOOLS),
            "tool_use_id": chance.choice(("t1", "t2", "")),
            "tool_input": {"file_path": chance.choice(_PATHS), "command": some_text(chance)},
            "tool_response": some_json(chance, _LEAVES),
            "prompt": some_text(chance),
            "message_id": chance.choice(("m1", "m2")),
            "delta": some_text(chance),
            "final": chance.random() < 0.5,
            "cwd": chance.choice(("/tmp", "", "x\0", str(self.top))),
        }
        if chance.random() < 0.2:
            event["agent_id"] = some_text(chance)
        return kind + b"h" + to_bytes(event)

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        kind, rest = data[:2], data[2:]
        if chance.random() < 0.85:
            with suppress(ValueError, RecursionError):
                return kind + to_bytes(mutated_json(json.loads(rest), chance, _LEAVES))
        return kind + mutated(rest, chance, self.size, (b'{"', b"[" * 900, b"\\ud800", b"9" * 400), other[2:])

    async def send(self, data: bytes) -> Hashable:
        try:
            event = json.loads(data[2:])
        except (ValueError, RecursionError):
            return None
        if not isinstance(event, dict):
            # The reader refuses values that are not objects.
            return None
        client = "claude" if data[:1] == b"c" else "codex"
        attachment = self._attachments[client]
        try:
            if data[1:2] == b"h":
                answer = await attachment.handle(event)
                check_sendable({"said": answer.dump(), "error": answer.error})
                return client, str(event.get("hook_event_name"))[:30], answer.dump()[:60], answer.status
            session = attachment.find_session({"session_id": "s1"})
            require(session is not None, "no session")
            if session is not None:
                await attachment.record_line(session, event)
                return client, attachment.shows_activity(event), str(event.get("type"))[:20]
        except WatchroomError as error:
            return client, refusal_kind(error)
        return None


_UPDATES: Final[Sequence[Json]] = (
    {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": {"type": "text", "text": "hello"}},
    {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}},
    {
        "sessionUpdate": "tool_call",
        "toolCallId": "t1",
        "kind": "edit",
        "title": "x",
        "status": "in_progress",
        "rawInput": {"a": 1},
        "content": [{"type": "diff", "path": "a", "oldText": "one\ntwo\n", "newText": "one\n"}],
    },
    {"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "rawOutput": {"x": 1}},
    {"sessionUpdate": "plan", "entries": [{"content": "x", "status": "pending"}]},
    {"sessionUpdate": "usage_update", "cost": {"currency": "USD", "amount": 0.5}},
    {"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 10**30}},
)
_ACP_LEAVES: Final[Sequence[Json]] = (
    *(
        "t1",
        "t2",
        "m1",
        "diff",
        "content",
        "text",
        "completed",
        "failed",
        "USD",
        "\ud800",
        *HOSTILE,
        *NUMBERS,
    ),
    10**400,
    {},
    [],
    "a\n" * 2000 + "b\nc\n" * 2000,
)


class AcpUpdates:
    """Checks that each update of a session is translated, whatever it contains."""

    name = "acp"
    size = 60_000
    period = 10_000
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._translator = AcpTranslator("opus")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to release."""

    def generate(self, chance: Random) -> bytes:
        return to_bytes(mutated_json(chance.choice(_UPDATES), chance, _ACP_LEAVES))

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        return to_bytes(mutated_json(json.loads(data), chance, _ACP_LEAVES))

    def run(self, data: bytes) -> Hashable:
        update = json.loads(data)
        if not isinstance(update, dict):
            return None
        events = self._translator.translate(update)
        if "toolCallId" in update:
            asked = self._translator.describe_call(update)
            events += asked.events
            json.dumps([asked.tool, asked.arguments, asked.difference])
        if "stopReason" in update or "usage" in update:
            events += self._translator.end_turn(update)
        json.dumps(events, default=repr)
        return tuple(type(event).__name__ for event in events), tuple(sorted(map(str, update)))[:6]

    def check(self) -> Sequence[str]:
        return ()
