"""Gemini CLI: its record, and the translation of its hooks and session files. Pure.

Hooks have their own event names, tools and answers. `read_event` and `write_answer` translate them into the
format of Claude Code and back, so all other code handles a single format. Hooks have no id of a call.

The session file is not documented, so unknown lines are skipped. It can have several lines for one message,
all with its id and its usage. The input count includes cached tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from watchroom.agents.clients import claude
from watchroom.agents.clients.adapter import (
    COMMON_EVENTS,
    TIMEOUT_SECONDS,
    AcpSupport,
    ClientAdapter,
    Event,
    HookSupport,
    LaunchParts,
    LaunchSupport,
    LaunchWords,
    PersonalFile,
    Table,
)
from watchroom.agents.clients.events import ClientEvent, MessageCompleted, UsageAdded
from watchroom.agents.clients.hook_answers import (
    AFTER,
    BEFORE,
    END,
    FAILURE,
    PERMISSION,
    PROMPT,
    START,
    STOP,
    HookAnswer,
    block,
)
from watchroom.agents.clients.json_fields import absolute_path, count_of, dump, object_of, text_of
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.sessions.rows import OWN_TOOLS
from watchroom.features.trees.uses import NOTHING, FileWrite, NewText, ToolEffects, ToolUse
from watchroom.features.trees.write_rules import PassageEdit
from watchroom.model import Json

_SETTINGS: Final = ".gemini/settings.json"
_NAMES: Final = {
    BEFORE: "BeforeTool",
    AFTER: "AfterTool",
    PROMPT: "BeforeAgent",
    STOP: "AfterAgent",
    START: START,
    END: END,
}
"""The client's names of events. A failed call is reported as `AFTER`."""
_SHARED_NAMES: Final = {name: event for event, name in _NAMES.items()}
_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "read_file": ("Read", {}),
    "write_file": ("Write", {}),
    "replace": ("Edit", {"allow_multiple": "replace_all"}),
    "run_shell_command": ("Bash", {}),
}
"""The names of tools in the shared format, each with the names of its arguments that differ."""
_ARGUMENTS: Final = {name: {own: other for other, own in names.items()} for name, names in _TOOLS.values()}
"""The client's names of the arguments of tools in the shared format."""
_READING_TOOLS: Final = frozenset(
    {
        *("update_topic", "list_directory", "grep_search", "glob", "read_many_files", "web_fetch"),
        *("google_web_search", "write_todos", "ask_user", "enter_plan_mode", "exit_plan_mode"),
        *("invoke_agent", "activate_skill", "list_background_processes", "read_background_output"),
    }
)
"""Tools that change no file. Subagents report their own calls."""
_SERVER: Final = "watchroom"
"""The name of Watchroom's server in reports of calls."""
_PART: Final = re.compile(
    r"Showing lines (\d{1,9})-(\d{1,9}) of .*?^--- FILE CONTENT \(truncated\) ---\n(.*)",
    re.DOTALL | re.MULTILINE,
)
"""Matches the text of a read that returned a part of the file."""
_VARIABLE: Final = re.compile(r"""(?P<mark>['"])|\$(?P<name>\w+)""")
_MODES: Final = ("-y", "--yolo", "--approval-mode")


def read_event(event: Event) -> Event:
    """Return the hook ``event`` in the shared format."""
    name = text_of(event, "hook_event_name")
    given: dict[str, Json] = {**event, "hook_event_name": _SHARED_NAMES.get(name, name)}
    tool, arguments = text_of(event, "tool_name"), object_of(event, "tool_input")
    if not tool:
        return given
    context = object_of(event, "mcp_context")
    if text_of(context, "server_name") == _SERVER:
        given["tool_name"] = f"{OWN_TOOLS}{text_of(context, 'tool_name')}"
    elif tool in _TOOLS:
        given["tool_name"], names = _TOOLS[tool]
        given["tool_input"] = {names.get(each, each): value for each, value in arguments.items()}
    error = object_of(object_of(event, "tool_response"), "error")
    if name == _NAMES[AFTER] and error:
        given |= {"hook_event_name": FAILURE, "error": text_of(error, "message")}
    return given


def write_answer(event: Event, answer: HookAnswer) -> HookAnswer:
    """Return ``answer`` to ``event``, both in the shared format, as the client reads it.

    An answer never skips the client's own question, so an allowed call needs no decision.
    """
    if answer.said is None:
        return answer
    said = dict(answer.said)
    own = object_of(said, "hookSpecificOutput")
    said.pop("hookSpecificOutput", None)
    if own.get("permissionDecision") == "deny":
        said |= {"decision": "deny", "reason": own.get("permissionDecisionReason")}
    specific: dict[str, Json] = {}
    if "additionalContext" in own:
        specific["additionalContext"] = own["additionalContext"]
    changed = own.get("updatedInput")
    if isinstance(changed, Mapping):
        names = _ARGUMENTS.get(text_of(event, "tool_name"), {})
        specific["tool_input"] = {names.get(each, each): value for each, value in changed.items()}
    if specific:
        name = text_of(event, "hook_event_name")
        named = _NAMES.get(AFTER if name == FAILURE else name, name)
        said["hookSpecificOutput"] = {"hookEventName": named, **specific}
    return answer._replace(said=said or None)


def write_line(line: str) -> str:
    """Return the shell line ``line`` without words that the client replaces: when it reads its settings, it
    replaces ``$NAME`` with the variable of its own environment, also within quotes. The shell reads the
    returned line as ``line``."""

    parts: list[str] = []
    quote, at = "", 0
    for found in _VARIABLE.finditer(line):
        mark, name = found["mark"], found["name"]
        if mark and quote in ("", mark):
            quote = "" if quote else mark
        if name:
            parts += [line[at : found.start()], f"$''{name}" if quote == "'" else f"${{{name}-}}"]
            at = found.end()
    return "".join((*parts, line[at:]))


def _translate_hook(event: Event) -> tuple[ClientEvent, ...]:
    """Return the client events in the hook ``event``. Results of tools are texts."""
    response = object_of(event, "tool_response")
    said = response.get("llmContent")
    if response:
        event = {**event, "tool_response": said if isinstance(said, str) else dump(response)}
    return claude.translate_hook(event)


def _translate_line(line: Event) -> tuple[ClientEvent, ...]:
    """Return the client events in ``line``, a line of a session file: a message of the model, and usage."""
    key, model = text_of(line, "id"), text_of(line, "model")
    if line.get("type") != "gemini" or not key:
        return ()
    text, tokens = text_of(line, "content"), object_of(line, "tokens")
    found: list[ClientEvent] = []
    if text.strip():
        found.append(MessageCompleted(text, model=model, key=f"said {key}"))
    cached = count_of(tokens, "cached")
    output = count_of(tokens, "output") + count_of(tokens, "thoughts")
    used = UsageTotal(max(0, count_of(tokens, "input") - cached), output, cached)
    if used.tokens:
        found.append(UsageAdded(used, model, key))
    return tuple(found)


def _find_transcript(event: Event) -> str:
    return text_of(event, "transcript_path")


def _describe_use(event: Event) -> ToolUse:
    """Return the effects of the call of ``event`` on files. The text of a write can be replaced."""
    tool = text_of(event, "tool_name")
    if tool in _READING_TOOLS:
        return NOTHING
    use = claude.describe_use(event)._replace(takes_texts=tool == "Write")
    done = object_of(object_of(event, "tool_response"), "returnDisplay")
    before, after = text_of(done, "originalContent"), text_of(done, "newContent")
    # The client finds a passage even if its blanks differ, so the passage may not be in the file.
    if tool == "Edit" and before and "newContent" in done:
        path = absolute_path(event, text_of(object_of(event, "tool_input"), "file_path"))
        given = object_of(event, "tool_input")
        old, new = text_of(given, "old_string"), text_of(given, "new_string")
        if before.replace(old, new, -1 if given.get("replace_all") is True else 1) != after:
            return use._replace(writes=(FileWrite(path, PassageEdit(before, after)),))
    return use


def _describe_result(event: Event) -> ToolEffects:
    """Return the actual effects of the call of ``event``."""
    if text_of(event, "hook_event_name") == FAILURE:
        return ToolEffects(is_failed=True)
    tool, response = text_of(event, "tool_name"), object_of(event, "tool_response")
    if tool == "Bash":
        return ToolEffects(is_running=object_of(event, "tool_input").get("is_background") is True)
    said = response.get("llmContent")
    if tool == "Read" and isinstance(said, str):
        part = _PART.search(said)
        if part is None:
            return ToolEffects(text=said)
        first, last = int(part[1]), int(part[2])
        return ToolEffects(text=part[3], lines=(max(0, first - 1), last))
    original = object_of(response, "returnDisplay").get("originalContent")
    return ToolEffects(original=original if isinstance(original, str) else None)


def _replace_texts(event: Event, texts: Sequence[NewText]) -> Mapping[str, Json]:
    return claude.replace_texts(event, texts)


def _entry_fields(event: str, is_strict: bool) -> Mapping[str, Json]:
    # The client's timeouts are in milliseconds.
    return {"name": _SERVER, "timeout": _EVENTS[event] * 1000}


def _describe_launch(parts: LaunchParts, given: Sequence[str], environment: Mapping[str, str]) -> LaunchWords:
    """Return the command line that starts Gemini CLI. It refuses two approval modes, so the person's mode
    replaces ours."""
    size = len(_BATCH)
    is_batch = tuple(given[:size]) == _BATCH
    if is_batch and any(word.partition("=")[0] in _MODES for word in given[size:]):
        given = given[size:]
    return LaunchWords(tuple(given), parts.environment)


def _events() -> dict[str, int]:
    events = {**COMMON_EVENTS, STOP: TIMEOUT_SECONDS, END: TIMEOUT_SECONDS}
    # No hook can answer the client's own question.
    del events[PERMISSION]
    return events


_EVENTS: Final = _events()
_INSTALL: Final = "npm install -g @google/gemini-cli"
_TRIED: Final = "0.61.0"
_BATCH: Final = ("--approval-mode", "auto_edit")
"""Without this, the client refuses all edits if there is no terminal."""

ADAPTER: Final = ClientAdapter(
    "gemini",
    AcpSupport(("gemini", "--acp"), "default", install=_INSTALL, registry=("gemini",), tried=_TRIED),
    HookSupport(
        servers=Table(_SETTINGS, ("mcpServers",)),
        environment=Table("", ()),
        hooks=Table(_SETTINGS, ("hooks",)),
        personal=PersonalFile("GEMINI_CLI_HOME", "~", _SETTINGS),
        events=_EVENTS,
        event_names=_NAMES,
        read_event=read_event,
        write_answer=write_answer,
        write_line=write_line,
        entry_fields=_entry_fields,
        translate_hook=_translate_hook,
        translate_line=_translate_line,
        find_transcript=_find_transcript,
        resume_turn=block,
        takes_arguments=True,
        describe_use=_describe_use,
        describe_result=_describe_result,
        replace_texts=_replace_texts,
        tried=_TRIED,
        untried=("questions",),
    ),
    LaunchSupport(
        "gemini",
        "Gemini CLI",
        _INSTALL,
        _describe_launch,
        "mcp extensions extension skills skill hooks hook gemma",
        _BATCH,
        prompt_option="--prompt",
        needs_attached=True,
        opening=("--prompt-interactive",),
    ),
    provider="gcp.gen_ai",
)
