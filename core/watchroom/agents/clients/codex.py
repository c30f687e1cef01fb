"""Codex: its record, and the translation of its hooks and rollout files. Pure.

The rollout file is not documented, so unknown lines are skipped. Usage comes from the hook after each request
to the model. Its input count includes cached tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    PersonalFile,
    PluginSupport,
    Table,
)
from watchroom.agents.clients.events import (
    CallFinished,
    CallMade,
    CallReturned,
    CallStarted,
    ClientEvent,
    MessageCompleted,
    PromptSubmitted,
    ResetReported,
    SessionEnded,
    TranscriptEvent,
    TurnBegan,
    TurnEnded,
    TurnFailed,
    UsageAdded,
)
from watchroom.agents.clients.hook_answers import block, without_bare_allowance
from watchroom.agents.clients.json_fields import amount_of, count_of, dump, object_of, text_of
from watchroom.agents.clients.patch_calls import list_patch_writes, replace_patch_texts
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.sessions.rows import OWN_TOOLS
from watchroom.features.trees.patches import find_shell_patch
from watchroom.features.trees.uses import NOTHING, NewText, ToolEffects, ToolUse
from watchroom.model import Json

_PATCH_TOOL: Final = "apply_patch"
_READING_TOOLS: Final = frozenset({"update_plan", "view_image", "web_search", "list_mcp_resources"})
"""Tools that change no file."""
_HOOKED_TOOLS: Final = ("exec_command", "shell", "shell_command", _PATCH_TOOL)
"""The names in rollout files of tools whose calls are certainly reported to hooks."""
_CONFIG: Final = ".codex/config.toml"
_PASSED: Final = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CODEX_HOME")
"""Codex gives a server few variables. Without these, it could reach another service than the hooks."""


def translate_hook(event: Event) -> tuple[ClientEvent, ...]:
    """Return the client events in the hook ``event``, none if nothing in it is recorded."""
    name, call = text_of(event, "hook_event_name"), text_of(event, "tool_use_id")
    if name == "UserPromptSubmit":
        turn = text_of(event, "turn_id")
        return (PromptSubmitted(text_of(event, "prompt"), key=f"prompt {turn}" if turn else ""),)
    if name == "PreToolUse" and call:
        return (CallStarted(call, text_of(event, "tool_name"), dump(event.get("tool_input"))),)
    if name == "PostToolUse" and call:
        given = event.get("tool_response")
        said = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        tool, arguments = text_of(event, "tool_name"), dump(event.get("tool_input"))
        return (CallFinished(call, said, tool=tool, arguments=arguments, cwd=text_of(event, "cwd")),)
    if name == "PostModelRequest":
        return _usage_events(event)
    if name in ("Stop", "Interrupt"):
        return (TurnEnded("" if name == "Stop" else "interrupted"),)
    if name in ("SessionEnd", "SubagentStop"):
        return (SessionEnded("done", text_of(event, "reason")),)
    return ()


def translate_line(line: Event) -> tuple[TranscriptEvent, ...]:
    """Return the events in ``line``, a line of a rollout file: the beginnings of turns, messages and calls of
    the model, turns that failed, and the resets of limits."""
    payload = object_of(line, "payload")
    kind = text_of(payload, "type") if line.get("type") == "event_msg" else ""
    if kind == "task_started":
        return (TurnBegan(),)
    if kind == "token_count" and payload.get("rate_limits"):
        return (ResetReported(_reset_of(object_of(payload, "rate_limits"))),)
    if kind == "task_complete" and (error := object_of(payload, "error")):
        # No hook reports the end of such a turn. Attempts that are repeated are not in this file.
        when, about = text_of(line, "timestamp"), text_of(error, "codex_error_info")
        words = (text_of(error, "message"), about or dump(error.get("codex_error_info")))
        return (TurnFailed("\n".join(words), f"limit {when}" if when else ""),)
    return _item_events(payload) if line.get("type") == "response_item" else ()


def _item_events(item: Mapping[str, Json]) -> tuple[TranscriptEvent, ...]:
    kind, call = text_of(item, "type"), text_of(item, "call_id")
    if kind in ("function_call", "custom_tool_call") and text_of(item, "name") in _HOOKED_TOOLS:
        return (CallMade(call),)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return (CallReturned(call),)
    if kind != "message" or item.get("role") != "assistant":
        return ()
    content = item.get("content")
    blocks = [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []
    text = "".join(text_of(block, "text") for block in blocks if block.get("type") == "output_text")
    key = text_of(item, "id")
    return (MessageCompleted(text, key=f"said {key}" if key else ""),) if text.strip() else ()


def _reset_of(limits: Mapping[str, Json]) -> int:
    """Return when the last used-up limit of an account resets, in seconds since the epoch; 0 if no limit is
    used up, or if that is unknown."""
    windows = [object_of(limits, each) for each in ("primary", "secondary")]
    used_up = [each for each in windows if (amount_of(each, "used_percent") or 0) >= 100]
    return max((count_of(each, "resets_at") for each in used_up), default=0)


def describe_use(event: Event) -> ToolUse:
    """Return the intended effects of the call of ``event`` on files."""
    tool, given = text_of(event, "tool_name"), object_of(event, "tool_input")
    if tool.startswith(OWN_TOOLS) or tool in _READING_TOOLS:
        return NOTHING
    command = text_of(given, "command")
    shell = find_shell_patch(command) if tool != _PATCH_TOOL else None
    patch = command or text_of(given, "input") if tool == _PATCH_TOOL else shell.patch if shell else ""
    writes = list_patch_writes(event, patch, shell.folder if shell else "") if patch else None
    if writes is None:
        return ToolUse("command", command=command, folder=text_of(event, "cwd"))
    if not writes:
        # Codex itself refuses a patch without files.
        return NOTHING
    # Codex reports neither failed patches nor patches by a shell.
    return ToolUse("write", writes, takes_texts=shell is None, can_end_unreported=True)


def _replace_texts(event: Event, texts: Sequence[NewText]) -> Mapping[str, Json]:
    """Return the arguments of the call of ``event``, with ``texts`` in its patch."""
    given = object_of(event, "tool_input")
    name = "command" if text_of(given, "command") else "input"
    return {**given, name: replace_patch_texts(event, text_of(given, name), texts)}


def describe_result(event: Event) -> ToolEffects:
    """Return the actual effects of the call of ``event``. Codex does not report calls that failed before they
    began."""
    return ToolEffects()


def _usage_events(event: Event) -> tuple[ClientEvent, ...]:
    usage = object_of(event, "token_usage")
    cached, written = count_of(usage, "cached_input_tokens"), count_of(usage, "cache_write_input_tokens")
    uncached = max(0, count_of(usage, "input_tokens") - cached - written)
    used = UsageTotal(uncached, count_of(usage, "output_tokens"), cached, written)
    if not used.tokens:
        return ()
    return (UsageAdded(used, text_of(event, "model"), _request_key(event, used)),)


def _request_key(event: Event, used: UsageTotal) -> str:
    """Return a key for the model request reported by ``event``, empty if the turn is unknown.

    Requests have no id. A repeated report has the same turn and the same counts.
    """
    turn = text_of(event, "turn_id")
    counts = "-".join(str(each) for each in (used.input, used.cache_read, used.cache_write, used.output))
    return f"request {turn} {counts}" if turn else ""


def find_transcript(event: Event) -> str:
    """Return the path of the rollout file of the session of ``event``, empty if there is none."""
    return text_of(event, "transcript_path")


def _describe_launch(parts: LaunchParts, given: Sequence[str], environment: Mapping[str, str]) -> LaunchWords:
    """Return the command line that starts Codex. Its settings are separate words, as TOML."""
    servers: dict[str, Json] = {
        name: {**object_of(parts.servers, name), "env_vars": [*_PASSED]} for name in parts.servers
    }
    settings = [(f"mcp_servers.{name}", each) for name, each in servers.items()]
    settings += [(f"shell_environment_policy.set.{name}", each) for name, each in parts.environment.items()]
    settings += [(f"hooks.{event}", groups) for event, groups in parts.hooks.items()]
    # The plugin would report each event a second time.
    settings.append((f"plugins.{PLUGIN}.enabled", False))
    words = [word for name, value in settings for word in ("-c", f"{name}={_toml(value)}")]
    return LaunchWords((*words, *given))


def _toml(value: Json) -> str:
    """Return ``value`` as TOML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name} = {_toml(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # Strings, numbers and booleans are written as in JSON.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


ADAPTER: Final = ClientAdapter(
    "codex",
    AcpSupport(
        ("codex-acp",),
        "read-only",
        install="npm install -g @agentclientprotocol/codex-acp",
        registry=("codex-acp",),
        tried="2.6.0",
    ),
    HookSupport(
        servers=Table(_CONFIG, ("mcp_servers",)),
        environment=Table(_CONFIG, ("shell_environment_policy", "set")),
        hooks=Table(".codex/hooks.json", ("hooks",)),
        personal=PersonalFile("CODEX_HOME", "~/.codex", "hooks.json"),
        events={
            **COMMON_EVENTS,
            "PostModelRequest": TIMEOUT_SECONDS,
            "Stop": TIMEOUT_SECONDS,
            "Interrupt": 3,
            "SessionEnd": 3,
        },
        translate_hook=translate_hook,
        translate_line=translate_line,
        find_transcript=find_transcript,
        resume_turn=block,
        # Codex 0.171.0 reports such an allowance as a failed hook, and decides itself.
        write_answer=without_bare_allowance,
        describe_use=describe_use,
        describe_result=describe_result,
        replace_texts=_replace_texts,
        # Codex still asks its person, and its sandbox stays active.
        allows_changes=True,
        reports_limits=True,
        tried="0.171.0",
        passes=_PASSED,
        plugin=PluginSupport(".codex-plugin/plugin.json", "PLUGIN_ROOT"),
    ),
    LaunchSupport(
        "codex",
        "Codex",
        "npm install -g @openai/codex",
        _describe_launch,
        "a apply archive cloud completion debug delete doctor features help login logout mcp migrate-nfs-db"
        " migrate-rollouts plugin queue sandbox unarchive update",
        # By default, it could not write. The last of these settings counts, so a person can give another.
        ("exec", "-c", 'sandbox_mode="workspace-write"'),
        # Without a folder, Codex asks whether to work in that of the session.
        fork=("fork", "-C", ".", SESSION_WORD),
        # Codex keeps one trusted text of a hook that its options give: another text turns it off everywhere.
        trusts_texts=True,
    ),
    provider="openai",
)
