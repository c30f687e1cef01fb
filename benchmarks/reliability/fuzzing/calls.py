"""Calls of all tools, by agents and a person, in a workspace with content of every kind."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, Final, Self

from watchroom import Agent, Toolbox, Workspace
from watchroom.algorithms.editing.tool_visibility import EDIT_TOOLS, SYNC_TOOLS
from watchroom.errors import WatchroomError
from watchroom.features.buffers.tools import buffer_tool
from watchroom.features.calls.tool_registry import all_tools
from watchroom.model import Json

from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.mutation import HOSTILE, NUMBERS, mutated_json, some_json, some_text, to_bytes
from reliability.fuzzing.oracle import check_sendable, require
from reliability.fuzzing.view_checks import problems

BUFFER: Final = "plan"
_BUFFER_TOOLS: Final = {
    tool.name: tool for name in (*EDIT_TOOLS, *SYNC_TOOLS) for tool in (buffer_tool("alice", BUFFER, name),)
}
ALL_TOOLS: Final = {**all_tools(), **_BUFFER_TOOLS}
"""All tools, including those of a buffer, which its owner has while it is open."""

_LEAVES: Final[Sequence[Json]] = (
    *("plan.md", "notes.md", "data.csv", "alice", "bob", "ada", "human:eve", "user", "global", "top-layer"),
    *("bottom-layer-alice", "plan", "doc", "a/" * 40 + "b", "x" * 3000, "\ud800", *HOSTILE, *NUMBERS),
    *("title", "body", "tags", "meta", "votes", "increment", "insert", "add", "replace", "lww_register"),
)
_SENSIBLE: Final[Mapping[str, Sequence[Json]]] = {
    "filename": ("notes.md", "data.csv", "deep/er/x.md"),
    "filepath": ("plan.md", "other.md", "deep/er/x.md"),
    "path": ("plan.md", "global", "notes.md"),
    "content": (
        "one\ntwo\n",
        "# Plan\n\n## Tasks\n\n- [ ] a\n",
        "<<<<<<< a\n=======\n>>>>>>> b\n",
        "```\n",
        "看板",
    ),
    "agent_id": ("alice", "bob", "ada"),
    "to": ("bob", "ada", "user"),
    "to_agent": ("bob", "alice"),
    "from_agent": ("bob", "alice"),
    "agents": (["alice"], ["bob", "ada"]),
    "board": ("global", "bottom-layer-alice", "top-layer"),
    "section": ("Milestones", "## Tasks", "Decisions > x", "里程碑"),
    "doc_id": ("doc", "doc2"),
    "field_name": ("title", "body", "tags", "meta", "votes"),
    "operation": ("insert", "delete", "replace", "add", "remove", "list", "increment", "value"),
    "args": ({"position": 0, "text": "x"}, {"from": 0, "to": 1}, {"from": 0, "to": 2, "text": "y"}),
    "key": ("a", "b"),
    "element": ("a", "b"),
    "amount": (1, 2),
    "expected_version": (-1, 0, 1, 2),
    "version": (1, 2),
    "to_version": (1, 2),
    "diff_from": (1, 2),
    "limit": (1, 5),
    "payload": ({"text": "Go on."}, "Go on."),
    "schema": ({"title": "lww_register", "body": "rga"},),
    "state": (
        {"title": {"value": 1, "stamp": [1, 0, "bob#b2"]}},
        {"votes": {"up": {"bob#b2": 3}, "down": {}}},
    ),
    "source": ("private", "collab", "board", "file"),
    "status": ("done", "failed"),
    "name": ("plan", "alice"),
    "buffer": ("plan", "doc"),
    "conflicts": ([1], [5, 9]),
    "decisions": ([{"approved": True}],),
    "scope": ("session", "agent", "team"),
    "measure": ("tokens", "cost", "steps"),
    "row": (1, 5, 20),
    "request": (1, 5, 20),
    "conflict": (1, 5, 20),
    "after": (0, 5, 40),
    "task": ("t1",),
    # Texts to replace in a buffer.
    "old": ("one", "two"),
    "new": ("three", ""),
}
"""Valid values of arguments, by name."""

_COMMANDS: Final = ("true", "", "\0", "exit 3", "\ud800")
"""Commands to run. A shell's handling of other texts is the sandbox's concern, and slow."""
_LONG_PERIOD: Final = 4000
_BAIT: Final = "not for agents"


class Calls:
    """Checks that every call is answered with JSON, that a refusal has a code and one row with the reason,
    that nothing outside the workspace changes, and that journal and files agree at the end."""

    name = "calls"
    size = 200_000
    period = _LONG_PERIOD
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._parent = folder
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            top = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self._parent)))
            self._top = top
            (top / "bait").write_text(_BAIT)
            self.workspace = stack.enter_context(Workspace.open(top / "team", agents=["alice", "bob"]))
            self.toolboxes = _settle(self.workspace, top / "project")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def generate(self, chance: Random) -> bytes:
        """Return the caller (0 to 2), the tool, and its arguments or their text."""
        tool: Json = chance.choice(sorted(ALL_TOOLS))
        kind = chance.random()
        if kind < 0.03:
            return to_bytes([chance.randint(0, 2), some_json(chance, _LEAVES), some_json(chance, _LEAVES)])
        if kind < 0.06:
            text = some_text(chance) if chance.random() < 0.5 else chance.choice(('{"a":', "[", '"')) * 5000
            return to_bytes([chance.randint(0, 2), tool, text])
        arguments = {}
        for name, schema in ALL_TOOLS[str(tool)].params.model_json_schema().get("properties", {}).items():
            how = chance.random()
            if how < 0.1:
                arguments[name] = some_json(chance, _LEAVES)
            elif how < 0.9 or "default" not in schema:
                sensible = _SENSIBLE.get(name, _by_type(schema))
                arguments[name] = chance.choice(sensible) if chance.random() < 0.85 else some_text(chance)
        if kind < 0.1:
            arguments[some_text(chance, 6)] = some_json(chance, _LEAVES)
        return to_bytes([chance.randint(0, 2), tool, arguments])

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        caller, tool, arguments = json.loads(data)
        if chance.random() < 0.1:
            caller = chance.randint(0, 2)
        if chance.random() < 0.1:
            tool = chance.choice(sorted(ALL_TOOLS))
        return to_bytes([caller, tool, mutated_json(arguments, chance, _LEAVES)])[: self.size]

    def run(self, data: bytes) -> Hashable:
        try:
            caller, tool, arguments = json.loads(data)
        except (ValueError, TypeError):
            return None
        if isinstance(arguments, dict):
            arguments = _quick(tool, arguments)
        toolbox = self.toolboxes[caller]
        call = f"call-{next(self._numbers)}"
        result = toolbox.dispatch_tool_call(tool, arguments, call=call)
        check_answer(self.workspace, toolbox, tool, call, result)
        said = (result.get("error"), len(str(result.get("message"))) // 20 if not result["success"] else 0)
        return str(tool)[:40], caller == 1, tuple(sorted(result))[:12], said

    def check(self) -> Sequence[str]:
        found = problems(self.workspace)
        if sorted(os.listdir(self._top)) != ["bait", "project", "team"]:
            found.append(f"beside the workspace: {sorted(os.listdir(self._top))}")
        if (self._top / "bait").read_text() != _BAIT:
            found.append("a file outside the workspace was written")
        return found


def check_answer(
    workspace: Workspace, toolbox: Toolbox, tool: object, call: str, result: Mapping[str, Any]
) -> None:
    """Check that ``result`` of ``call`` is complete, and that a refusal has one row with the reason."""
    check_sendable(dict(result))
    require(isinstance(result["success"], bool), result)
    if result["success"]:
        return
    told = [result[key] for key in ("error", "message", "suggestion")]
    require(all(isinstance(each, str) and each for each in told), result)
    require(result["error"] != WatchroomError.code, f"internal error of {tool}")
    # Failed edits and commands have rows of their own kind.
    if "workflow_state" not in result and tool != "run_command":
        rows = workspace.journal.rows_of_call(toolbox.actor, call)
        require(
            [row.error for row in rows if row.error] == [result["error"]],
            f"the rows of a refused {tool}: {[row.error for row in rows]}, {str(dict(result))[:300]}",
        )


def _settle(workspace: Workspace, project: Path) -> list[Toolbox]:
    """Create content of every kind. Return the callers: an agent, a person, and an agent of a task."""
    alice, bob = workspace.tools("alice"), workspace.tools("bob")
    fields: Json = {
        "title": "lww_register",
        "body": "rga",
        "tags": "or_set",
        "meta": "lww_map",
        "votes": "pn_counter",
    }
    first: Sequence[tuple[Toolbox, str, dict[str, Json]]] = (
        (bob, "collab_write", {"filepath": "plan.md", "content": "one\ntwo\n", "message": "m"}),
        (bob, "handoff_file", {"to_agent": "alice", "filename": "data.csv", "content": "1", "message": "m"}),
        (alice, "save_to_my_workspace", {"filename": "notes.md", "content": "one\n"}),
        (bob, "realtime_create_document", {"doc_id": "doc", "schema": fields}),
        (alice, "open_buffer", {"source": "collab", "path": "plan.md", "name": BUFFER}),
    )
    for toolbox, tool, arguments in first:
        result = toolbox.dispatch_tool_call(tool, arguments)
        require(result["success"], result)
    task = workspace.tasks.submit("human:eve", "Build something.", project)
    workspace.register([Agent("ada", task=task.id)])
    return [alice, workspace.tools_for_human("eve"), workspace.tools("ada")]


def _by_type(schema: Mapping[str, Any]) -> Sequence[Json]:
    kinds = {schema.get("type"), *(each.get("type") for each in schema.get("anyOf", ()))}
    if "boolean" in kinds:
        return True, False
    if kinds & {"integer", "number"}:
        return 0, 1, 2, 10
    return ("x", "plan.md", "alice", "m")


def _quick(tool: object, arguments: dict[str, Json]) -> dict[str, Json]:
    """Return the arguments without slow parts: commands, and waiting for others."""
    if "command" in arguments and arguments["command"] not in _COMMANDS:
        arguments = {**arguments, "command": _COMMANDS[len(str(arguments["command"])) % len(_COMMANDS)]}
    known = ALL_TOOLS.get(tool) if isinstance(tool, str) else None
    if known is not None and "wait_seconds" in known.params.model_fields:
        wait = arguments.get("wait_seconds")
        if wait is None or (isinstance(wait, int | float) and wait > 0):
            arguments = {**arguments, "wait_seconds": 0.01}
    return arguments
