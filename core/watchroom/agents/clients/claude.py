"""Claude Code: its record, and the translation of its hooks and transcripts. Pure.

The transcript is not documented, so unknown lines are skipped. It has a line for each block of a message,
each with the message's usage so far; `MessageUsage` counts each message once. At PreToolUse, the transcript
lags behind. Of the hooks, only PostToolBatch reports calls that the client itself refuses.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from watchroom.agents.clients.adapter import (
    COMMON_EVENTS,
    PLUGIN,
    SESSION_WORD,
    TIMEOUT_SECONDS,
    AcpSupport,
    ClientAdapter,
    Event,
    HookSupport,
    LaunchParts,
    LaunchSupport,
    LaunchWords,
    PluginSupport,
    Table,
)
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
    TextStreamed,
    TranscriptEvent,
    TurnBegan,
    TurnEnded,
    TurnFailed,
    UsageAdded,
)
from watchroom.agents.clients.hook_answers import HOLDING, STOP, STOP_FAILURE, HookAnswer
from watchroom.agents.clients.json_fields import (
    absolute_path,
    count_of,
    dump,
    merge_configuration,
    object_of,
    text_of,
)
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.sessions.limits import is_limit
from watchroom.features.sessions.rows import OWN_TOOLS
from watchroom.features.trees.uses import NOTHING, FileWrite, NewText, ToolEffects, ToolUse
from watchroom.features.trees.write_rules import PassageEdit, WholeText
from watchroom.model import Json

_READING_TOOLS: Final = frozenset(
    {
        *("Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "Task", "Agent", "Skill"),
        *("ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "ToolSearch", "BashOutput", "TaskOutput"),
        *("KillShell", "TaskStop", "ListMcpResourcesTool", "ReadMcpResourceTool", "TaskCreate", "TaskUpdate"),
        *("TaskGet", "TaskList"),
    }
)
"""Tools that change no file. Subagents report their own calls."""
_SETTINGS: Final = ".claude/settings.local.json"
"""The settings of one person, which are not shared with a project."""
_SETTINGS_OPTION: Final = "--settings"
_END_OF_OPTIONS: Final = "--"
_PLUGIN_TOOLS: Final = "mcp__plugin_watchroom_watchroom__"
"""The prefix of the names of Watchroom's tools in the plugin."""
_DAY: Final = 86_400
_FAILED: Final = ("error", "message")
_WOKEN: Final = re.compile(
    r"<task-notification>\n<summary>Stop hook feedback</summary>\n</task-notification>\n<system-reminder>\n"
    r'Stop hook blocking error from command "[^"\n]*": (.*)\n</system-reminder>',
    re.DOTALL,
)
"""The prompt with which Claude Code 2.1.332 reports the text of a hook that started a turn."""
_CONTINUATION: Final = re.compile(
    r"Your claude\.ai usage (?:limit has reset|is available again)\b.{0,60} Continue the task you were"
)
"""The prompt that Claude Code 2.1.332 gives itself up to two minutes after a usage limit has reset."""
_LOCAL_COMMANDS: Final = ("<command-name>", "<local-command")
"""The beginnings of lines about commands such as ``/usage``, which the client itself carries out."""
_SYNTHETIC: Final = "<synthetic>"
"""The model in messages that the client itself inserts after an interrupted turn."""


def read_event(event: Event) -> Event:
    """Return the hook ``event`` in the shared format, in which Watchroom's tools have one name each."""
    tool = text_of(event, "tool_name")
    if not tool.startswith(_PLUGIN_TOOLS):
        return event
    return {**event, "tool_name": OWN_TOOLS + tool.removeprefix(_PLUGIN_TOOLS)}


def translate_hook(event: Event) -> tuple[ClientEvent, ...]:
    """Return the client events in the hook ``event``, none if nothing in it is recorded."""
    name, call = text_of(event, "hook_event_name"), text_of(event, "tool_use_id")
    if name == "UserPromptSubmit":
        prompt = text_of(event, "prompt")
        woken = _WOKEN.fullmatch(prompt)
        return (
            PromptSubmitted(woken[1] if woken else prompt, key=_key("prompt", text_of(event, "prompt_id"))),
        )
    if name == "MessageDisplay":
        return (TextStreamed(text_of(event, "delta")),)
    if name == "PreToolUse" and call:
        return (CallStarted(call, text_of(event, "tool_name"), dump(event.get("tool_input"))),)
    if name == "PostToolUse" and call:
        return (_finished(event, _result(event.get("tool_response"))),)
    if name == "PostToolUseFailure" and call:
        said = next((text for field in _FAILED if (text := text_of(event, field))), "")
        return (_finished(event, said)._replace(is_error=True),)
    if name == "Stop" and not event.get("background_tasks"):
        return (TurnEnded(),)
    if name == STOP_FAILURE:
        words = (text_of(event, each) for each in ("last_assistant_message", "error_details", "error"))
        return (TurnFailed("\n".join(each for each in words if each)),)
    if name in ("SessionEnd", "SubagentStop"):
        return (SessionEnded("done", text_of(event, "reason")),)
    return ()


def _finished(event: Mapping[str, Json], result: str) -> CallFinished:
    return CallFinished(
        text_of(event, "tool_use_id"),
        result,
        tool=text_of(event, "tool_name"),
        arguments=dump(event.get("tool_input")),
        cwd=text_of(event, "cwd"),
    )


def translate_line(line: Event) -> tuple[TranscriptEvent, ...]:
    """Return the events in ``line``, a line of a transcript: prompts, messages, usage, results of calls, and
    limits of the model's server."""
    message = object_of(line, "message")
    is_own = line.get("isApiErrorMessage") or message.get("model") == _SYNTHETIC
    if line.get("type") == "assistant" and line.get("isApiErrorMessage") is True:
        return _limit_events(line, message)
    if line.get("type") == "assistant" and not is_own:
        return (*_message_events(message), *_usage_events(message))
    if line.get("type") == "user" and line.get("isMeta") is not True:
        return tuple(_results(message)) or _prompt_events(message)
    return ()


def _prompt_events(message: Mapping[str, Json]) -> tuple[TranscriptEvent, ...]:
    content = message.get("content")
    is_local = isinstance(content, str) and content.startswith(_LOCAL_COMMANDS)
    return () if is_local else (TurnBegan(),)


def _limit_events(line: Event, message: Mapping[str, Json]) -> tuple[ClientEvent, ...]:
    content = message.get("content")
    blocks = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    words = "\n".join([*(text_of(each, "text") for each in blocks), text_of(line, "error")]).strip()
    return (TurnFailed(words, _key("limit", text_of(line, "uuid"))),) if is_limit(words) else ()


def _message_events(message: Mapping[str, Json]) -> Iterator[ClientEvent]:
    key, model = text_of(message, "id"), text_of(message, "model")
    content = message.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        if isinstance(block, Mapping) and block.get("type") == "text" and text_of(block, "text").strip():
            yield MessageCompleted(text_of(block, "text"), model=model, key=_key("said", key))


def _usage_events(message: Mapping[str, Json]) -> Iterator[ClientEvent]:
    usage, key = object_of(message, "usage"), text_of(message, "id")
    used = UsageTotal(
        count_of(usage, "input_tokens"),
        count_of(usage, "output_tokens"),
        count_of(usage, "cache_read_input_tokens"),
        count_of(usage, "cache_creation_input_tokens"),
    )
    if used.tokens and key:
        yield UsageAdded(used, text_of(message, "model"), key)


def _results(message: Mapping[str, Json]) -> Iterator[ClientEvent]:
    content = message.get("content")
    for block in content if isinstance(content, list | tuple) else ():
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            call = text_of(block, "tool_use_id")
            if call:
                yield CallFinished(call, _result(block.get("content")), block.get("is_error") is True)


def _result(given: Json) -> str:
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _key(kind: str, key: str) -> str:
    return f"{kind} {key}" if key else ""


def describe_use(event: Event) -> ToolUse:
    """Return the effects of the call of ``event`` on files: the intended effects before the call, the actual
    effects after it."""
    tool, given = text_of(event, "tool_name"), object_of(event, "tool_input")
    done = object_of(event, "tool_response")
    path = absolute_path(event, text_of(given, "file_path") or text_of(given, "notebook_path"))
    if tool.startswith(OWN_TOOLS) or tool in _READING_TOOLS:
        return NOTHING
    if tool == "Read":
        return ToolUse("read", path=path)
    if tool == "Write":
        # The client refuses a text that differs from the model's, because it compares the file with its own
        # earlier read.
        text = text_of(done if "content" in done else given, "content")
        return ToolUse("write", (FileWrite(path, WholeText(text)),))
    if tool == "Edit":
        edit = PassageEdit(
            text_of(given, "old_string"), text_of(given, "new_string"), given.get("replace_all") is True
        )
        return ToolUse("write", (FileWrite(path, edit),))
    # Any other tool may change any file.
    return ToolUse("command", command=text_of(given, "command") if tool == "Bash" else "")


def describe_result(event: Event) -> ToolEffects:
    """Return the actual effects of the call of ``event``."""
    if text_of(event, "hook_event_name") == "PostToolUseFailure":
        return ToolEffects(is_failed=True)
    response = object_of(event, "tool_response")
    original = response.get("originalFile")
    read = object_of(response, "file")
    text, lines = read.get("content"), None
    start, count = count_of(read, "startLine"), count_of(read, "numLines")
    if count < count_of(read, "totalLines"):
        lines = (max(0, start - 1), max(0, start - 1) + count)
    return ToolEffects(
        text=text if isinstance(text, str) else None,
        lines=lines,
        original=original if isinstance(original, str) else None,
        is_running=bool(text_of(response, "backgroundTaskId")),
    )


def replace_texts(event: Event, texts: Sequence[NewText]) -> Mapping[str, Json]:
    """Return the arguments of the call of ``event``, a call of the tool ``Write``, with the replaced text."""
    (new,) = texts
    return {**object_of(event, "tool_input"), "content": new.text}


def _is_continuation(event: Event) -> bool:
    return _CONTINUATION.match(text_of(event, "prompt")) is not None


def find_transcript(event: Event) -> str:
    """Return the path of the transcript of the session or subagent of ``event``, empty if there is none."""
    own, path, subagent = (
        text_of(event, name) for name in ("agent_transcript_path", "transcript_path", "agent_id")
    )
    if subagent and not own and path.endswith(".jsonl"):
        return os.path.join(path.removesuffix(".jsonl"), "subagents", f"agent-{subagent}.jsonl")
    return own or path


def _resume_turn(text: str) -> HookAnswer:
    return HookAnswer(None, text, 2)


def _entry_fields(event: str, is_strict: bool) -> Mapping[str, Json]:
    if event in (STOP, STOP_FAILURE):
        # The hook waits while the client is idle, and starts a turn when something arrives for the agent.
        return {"asyncRewake": True}
    return {"onFailure": "block"} if is_strict and event in HOLDING else {}


def _describe_launch(parts: LaunchParts, given: Sequence[str], environment: Mapping[str, str]) -> LaunchWords:
    """Return the command line that starts Claude Code.

    Settings in the person's ``--settings`` are merged with ours, because Claude Code only reads the last
    option.
    """
    arguments, own = _take_settings(given)
    # The plugin would report each event a second time.
    plugins: Json = {PLUGIN: False}
    ours: dict[str, Json] = {"hooks": parts.hooks, "env": parts.environment, "enabledPlugins": plugins}
    try:
        settings = merge_configuration(own, ours)
    except ValueError as error:
        raise ValueError(_SETTINGS_OPTION) from error
    server: Json = {"mcpServers": parts.servers}
    # The option for servers takes several values, so another option must follow it.
    files = (
        "--mcp-config",
        parts.keep(_as_json(server), ".json"),
        _SETTINGS_OPTION,
        parts.keep(_as_json(settings), ".json"),
    )
    return LaunchWords((*files, *arguments))


def _take_settings(given: Sequence[str]) -> tuple[list[str], Mapping[str, Json]]:
    """Return the arguments without ``--settings``, and the settings in that option. Raise ValueError."""
    end = given.index(_END_OF_OPTIONS) if _END_OF_OPTIONS in given else len(given)
    kept: list[str] = []
    value = None
    words = iter(given[:end])
    for word in words:
        if word == _SETTINGS_OPTION:
            value = next(words, "")
        elif word.startswith(f"{_SETTINGS_OPTION}="):
            value = word.partition("=")[2]
        else:
            kept.append(word)
    settings = {} if value is None else _read_settings(value)
    return [*kept, *given[end:]], settings


def _read_settings(value: str) -> Mapping[str, Json]:
    """Return the settings in ``value``: JSON, or the path of a file. Raise ValueError."""
    try:
        if not value.lstrip().startswith("{"):
            with open(value, encoding="utf-8") as file:
                value = file.read()
        settings = json.loads(value)
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(_SETTINGS_OPTION) from error
    if not isinstance(settings, dict):
        raise ValueError(_SETTINGS_OPTION)
    return settings


def _as_json(fields: Json) -> str:
    return json.dumps(fields, ensure_ascii=False, indent=1) + "\n"


ADAPTER: Final = ClientAdapter(
    "claude",
    AcpSupport(
        ("claude-agent-acp",),
        "default",
        no_tools={"claudeCode": {"options": {"tools": [], "settingSources": []}}},
        tool_name=("_meta", "claudeCode", "toolName"),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        registry=("claude-acp", "claude-agent-acp", "claude-code-acp"),
        tried="0.101.0",
    ),
    HookSupport(
        servers=Table(".mcp.json", ("mcpServers",)),
        environment=Table(_SETTINGS, ("env",)),
        hooks=Table(_SETTINGS, ("hooks",)),
        old_files=(".claude/settings.json",),
        events={
            **COMMON_EVENTS,
            "PostToolUseFailure": TIMEOUT_SECONDS,
            "PostToolBatch": TIMEOUT_SECONDS,
            "MessageDisplay": TIMEOUT_SECONDS,
            "SubagentStart": TIMEOUT_SECONDS,
            "SubagentStop": TIMEOUT_SECONDS,
            "Stop": _DAY,
            STOP_FAILURE: _DAY,
            "SessionEnd": TIMEOUT_SECONDS,
        },
        entry_fields=_entry_fields,
        read_event=read_event,
        translate_hook=translate_hook,
        translate_line=translate_line,
        find_transcript=find_transcript,
        resume_turn=_resume_turn,
        needs_status=(STOP, STOP_FAILURE),
        waits_when_idle=True,
        takes_arguments=True,
        describe_use=describe_use,
        describe_result=describe_result,
        replace_texts=replace_texts,
        merges_texts=False,
        reports_limits=True,
        continues_after_limit=_is_continuation,
        tried="2.1.332",
        plugin=PluginSupport(
            ".claude-plugin/plugin.json",
            "CLAUDE_PLUGIN_ROOT",
            project="CLAUDE_PROJECT_DIR",
            exports="CLAUDE_ENV_FILE",
        ),
    ),
    LaunchSupport(
        "claude",
        "Claude Code",
        "npm install -g @anthropic-ai/claude-code",
        _describe_launch,
        "attach auth auto-mode doctor gateway import install kill logs mcp plugin plugins purge rm"
        " setup-token stop update upgrade",
        ("-p",),
        # Claude Code 2.1.332 finds the session of another folder by its id, and leaves its file as it is.
        fork=("--resume", SESSION_WORD, "--fork-session"),
    ),
    provider="anthropic",
)
