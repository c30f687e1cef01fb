"""Gemini CLI: its events and answers in the shared format, and settings that it does not change as it reads them."""

from __future__ import annotations

import re
import subprocess
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.agents.clients.configuration import AttachedAs, HookProgram, build_configuration, find_entries
from watchroom.agents.clients.events import CallFinished, ClientEvent, MessageCompleted, UsageAdded
from watchroom.agents.clients.gemini import read_event, write_answer, write_line
from watchroom.agents.clients.hook_answers import HookAnswer, allow, block, deny, stop, tell, warn
from watchroom.agents.clients.registry import hooks_of
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.trees.write_rules import PassageEdit

HOOKS: Final = hooks_of("gemini")
REPLACED: Final = re.compile(r"\$(?:(\w+)|{([^}]+?)(?::-([^}]*))?})")
"""What the client replaces when it reads its settings, if a variable of its environment has this name."""


def before(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"hook_event_name": "BeforeTool", "tool_name": tool, "tool_input": arguments}


def after(tool: str, response: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return {**before(tool, **arguments), "hook_event_name": "AfterTool", "tool_response": response}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (before("write_file", file_path="a"), ("PreToolUse", "Write", {"file_path": "a"})),
        (before("replace", allow_multiple=True), ("PreToolUse", "Edit", {"replace_all": True})),
        (before("run_shell_command", command="ls"), ("PreToolUse", "Bash", {"command": "ls"})),
        (before("glob", pattern="*"), ("PreToolUse", "glob", {"pattern": "*"})),
        (after("read_file", {"llmContent": "x"}), ("PostToolUse", "Read", {})),
        (after("replace", {"error": {"message": "no"}}), ("PostToolUseFailure", "Edit", {})),
    ],
)
def test_calls_have_the_shared_names(event: dict[str, Any], expected: tuple[str, str, Any]) -> None:
    found = read_event(event)
    assert (found["hook_event_name"], found["tool_name"], found["tool_input"]) == expected


def test_a_call_of_our_server_is_known_by_its_server() -> None:
    own = {"mcp_context": {"server_name": "watchroom", "tool_name": "collab_read"}}
    assert (
        read_event({**before("mcp_watchroom_collab_read"), **own})["tool_name"]
        == "mcp__watchroom__collab_read"
    )
    other = {"mcp_context": {"server_name": "other", "tool_name": "collab_read"}}
    assert read_event({**before("mcp_other_x"), **other})["tool_name"] == "mcp_other_x"


@pytest.mark.parametrize(
    ("name", "answer", "said"),
    [
        ("PreToolUse", deny("PreToolUse", "no"), {"decision": "deny", "reason": "no"}),
        (
            "PreToolUse",
            stop("PreToolUse", "no"),
            {"decision": "deny", "reason": "no", "continue": False, "stopReason": "no"},
        ),
        ("PreToolUse", allow("PreToolUse"), None),
        (
            "PreToolUse",
            allow("PreToolUse", {"replace_all": True}),
            {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"allow_multiple": True}}},
        ),
        (
            "PostToolUseFailure",
            tell("PostToolUseFailure", "news"),
            {"hookSpecificOutput": {"hookEventName": "AfterTool", "additionalContext": "news"}},
        ),
        ("UserPromptSubmit", block("paused"), {"decision": "block", "reason": "paused"}),
        ("SessionStart", warn("late"), {"systemMessage": "late"}),
        ("Stop", HookAnswer(), None),
    ],
)
def test_answers_are_those_of_the_client(name: str, answer: HookAnswer, said: Any) -> None:
    event = {"hook_event_name": name, "tool_name": "Edit"}
    assert write_answer(event, answer).said == said


def test_messages_and_usage_come_from_the_session_file() -> None:
    tokens = {"input": 100, "output": 20, "cached": 30, "thoughts": 5, "tool": 0, "total": 125}
    line: dict[str, Any] = {
        "id": "m1",
        "type": "gemini",
        "content": "Hello",
        "tokens": tokens,
        "model": "flash",
    }
    expected: tuple[ClientEvent, ...] = (
        MessageCompleted("Hello", model="flash", key="said m1"),
        UsageAdded(UsageTotal(70, 25, 30), "flash", "m1"),
    )
    assert HOOKS.translate_line(line) == expected
    assert HOOKS.translate_line({**line, "type": "user"}) == ()
    assert HOOKS.translate_line({"$set": {"messages": [line]}}) == ()


def test_the_result_of_a_call_is_what_the_model_reads() -> None:
    event = read_event(after("run_shell_command", {"llmContent": "out", "returnDisplay": "x"}, command="ls"))
    (ended,) = HOOKS.translate_hook({**event, "tool_use_id": "c1"})
    assert isinstance(ended, CallFinished)
    assert (ended.result, ended.tool, ended.is_error) == ("out", "Bash", False)
    background = read_event(after("run_shell_command", {"llmContent": ""}, is_background=True))
    assert HOOKS.describe_result(background).is_running


def test_a_part_of_a_file_is_known_by_its_lines() -> None:
    said = "\nStatus: Showing lines 2-3 of 5 total lines.\n\n--- FILE CONTENT (truncated) ---\nTWO\nthree"
    result = HOOKS.describe_result(read_event(after("read_file", {"llmContent": said})))
    assert (result.text, result.lines) == ("TWO\nthree", (1, 3))


def test_a_passage_that_the_client_found_elsewhere_is_known_by_its_file() -> None:
    done = {"returnDisplay": {"originalContent": "  a\nb\n", "newContent": "  A\nb\n"}}
    event = read_event(after("replace", done, file_path="/f", old_string="a ", new_string="A "))
    (write,) = HOOKS.describe_use(event).writes
    assert write.intent == PassageEdit("  a\nb\n", "  A\nb\n")
    exact = read_event(after("replace", done, file_path="/f", old_string="a", new_string="A"))
    assert HOOKS.describe_use(exact).writes[0].intent == PassageEdit("a", "A")


@pytest.mark.parametrize("common", ["", "/repo/.git"])
@pytest.mark.parametrize("curl", ["", "/usr/bin/curl"])
def test_the_client_replaces_nothing_in_our_hooks(common: str, curl: str) -> None:
    hook = HookProgram(["/bin/watchroom"], files=["/bin/watchroom"], curl=curl, socket="/r/s", common=common)
    (fields,) = build_configuration("gemini", hook, AttachedAs("/team", ())).json.values()
    hooks: Any = fields["hooks"]
    for groups in hooks.values():
        (entry,) = groups[0]["hooks"]
        for found in REPLACED.finditer(entry["command"]):
            name = found[1] or found[2]
            assert not re.fullmatch(r"\w+", name), found[0]
        assert entry["timeout"] >= 60_000, "in milliseconds"
    assert find_entries(fields, HOOKS) == [AttachedAs("/team", ())] * len(HOOKS.events)


@given(
    st.lists(
        st.sampled_from(("$a", "'", '"', "x", " ", "$b", '"$a"', "'$a'", "'\"'\"'", "${a%y}", "trap '$a' 0")),
        max_size=8,
    ).map("".join)
)
def test_a_rewritten_line_is_the_same_for_the_shell(line: str) -> None:
    printed = [
        subprocess.run(
            ["/bin/sh", "-c", f"a=1y; printf '<%s>' {each}"], capture_output=True, text=True, check=False
        ).stdout
        for each in (line, write_line(line))
    ]
    assert printed[0] == printed[1]
