"""opencode: its record, and the plugin that runs hooks. Pure.

opencode has no hooks of its own. The plugin runs the same hook lines as Claude Code, and reports events and
tools in the format of Claude Code. So all other code handles a single format.
"""

from __future__ import annotations

import json
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
    Table,
)
from watchroom.agents.clients.events import ClientEvent
from watchroom.agents.clients.hook_answers import PERMISSION, STOP_FAILURE, block
from watchroom.agents.clients.json_fields import merge_configuration, object_of, text_of
from watchroom.agents.clients.patch_calls import list_patch_writes, replace_patch_texts
from watchroom.features.trees.uses import NOTHING, NewText, ToolEffects, ToolUse
from watchroom.model import Json

_CONTENT: Final = "OPENCODE_CONFIG_CONTENT"
"""The environment variable with settings that opencode merges last."""
_NO_TABLE: Final = Table("", ())
_PATCH_TOOL: Final = "apply_patch"
"""The tool with which models of OpenAI write files, instead of ``edit`` and ``write``."""
_PATCH: Final = "patchText"
_NUMBERED_LINE: Final = re.compile(r"^(\d{1,9}): (.*)$", re.MULTILINE)
_END_OF_FILE: Final = "\n(End of file"
_MAX_END: Final = 100
"""Number of characters at the end of a read that may say whether the file has more lines."""
_PLUGIN: Final = """\
// Written by Watchroom. It runs Watchroom's hooks before and after the tools of opencode.
import { spawn } from "node:child_process"

const HOOKS = %s
const OWN = "watchroom_"
const TOOLS = {
  bash: ["Bash", {}],
  read: ["Read", { filePath: "file_path" }],
  write: ["Write", { filePath: "file_path" }],
  edit: ["Edit", {
    filePath: "file_path", oldString: "old_string", newString: "new_string", replaceAll: "replace_all",
  }],
}

const rename = (fields, names) =>
  Object.fromEntries(Object.entries(fields ?? {}).map(([name, value]) => [names[name] ?? name, value]))
const reverse = (names) => Object.fromEntries(Object.entries(names).map(([name, other]) => [other, name]))
const nameOf = (tool) =>
  TOOLS[tool]?.[0] ?? (tool.startsWith(OWN) ? `mcp__watchroom__${tool.slice(OWN.length)}` : tool)
const argumentsOf = (tool, args) => rename(args, TOOLS[tool]?.[1] ?? {})

export const Watchroom = async ({ client, directory }) => {
  const parents = new Map()
  const open = new Map()
  const openCallsOf = (session) => [...open.keys()].filter((call) => open.get(call) === session)
  // The model does not read what a hook says after a tool has failed, so the next tool or prompt brings it.
  const untold = new Map()
  const keep = (session, answer) => {
    const text = answer.hookSpecificOutput?.additionalContext
    if (text) untold.set(session, [...(untold.get(session) ?? []), text])
  }
  const take = (session, answer) => {
    keep(session, answer)
    const texts = untold.get(session) ?? []
    untold.delete(session)
    return texts.join("\\n")
  }

  const hook = (name, session, fields) => new Promise((resolve) => {
    const known = HOOKS[name]
    if (!known) return resolve({})
    let root = session
    while (parents.get(root)) root = parents.get(root)
    const who = root === session ? {} : { agent_id: session, agent_type: "subagent" }
    const event = { hook_event_name: name, session_id: root, cwd: directory, ...who, ...fields }
    const child = spawn("/bin/sh", ["-c", known.line], { stdio: ["pipe", "pipe", "pipe"], cwd: directory })
    let out = "", said = ""
    const timer = setTimeout(() => child.kill(), known.seconds * 1000)
    child.stdout.on("data", (piece) => { out += piece })
    child.stderr.on("data", (piece) => { said += piece })
    child.stdin.on("error", () => {})
    child.on("error", () => { clearTimeout(timer); resolve({}) })
    child.on("close", (status, signal) => {
      clearTimeout(timer)
      let answer = {}
      try { answer = JSON.parse(out) } catch {}
      // A hook that was killed may have waited for a person.
      const isKilled = name === "PreToolUse" && (signal || status > 128)
      resolve(status === 2 || isKilled ? { refused: said.trim() || "refused" } : answer)
    })
    child.stdin.end(JSON.stringify(event) + "\\n")
  })

  return {
    event: async ({ event }) => {
      const fields = event.properties ?? {}
      if (event.type === "session.created") {
        parents.set(fields.info.id, fields.info.parentID)
        await hook(fields.info.parentID ? "SubagentStart" : "SessionStart", fields.info.id, {})
      } else if (event.type === "session.idle") {
        // The error of an interrupted call may still follow.
        for (const call of openCallsOf(fields.sessionID)) open.set(call, "")
        const isChild = parents.get(fields.sessionID)
        const answer = await hook(isChild ? "SubagentStop" : "Stop", fields.sessionID, {})
        if (answer.decision === "block" && answer.reason) {
          const parts = [{ type: "text", text: answer.reason }]
          client.session.promptAsync({ path: { id: fields.sessionID }, body: { parts } })
        }
      } else if (event.type === "session.error" && fields.sessionID) {
        const error = fields.error ?? {}, data = error.data ?? {}
        const headers = data.responseHeaders ?? {}
        const details = [data.message, data.statusCode && `status: ${data.statusCode}`,
          headers["retry-after"] && `retry-after: ${headers["retry-after"]}`]
        await hook("StopFailure", fields.sessionID, {
          error: error.name, error_details: details.filter(Boolean).join(", "),
        })
      } else if (event.type === "message.part.updated") {
        const part = fields.part
        if (part?.type === "tool" && part.state?.status === "error" && open.delete(part.callID)) {
          keep(part.sessionID, await hook("PostToolUseFailure", part.sessionID, {
            tool_name: nameOf(part.tool), tool_use_id: part.callID, error: part.state.error,
            tool_input: argumentsOf(part.tool, part.state.input),
          }))
        }
      }
    },
    "chat.message": async (input, output) => {
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\\n")
      // opencode also takes prompts while tools run.
      const answer = await hook("UserPromptSubmit", input.sessionID, {
        prompt, prompt_id: output.message.id, open_calls: openCallsOf(input.sessionID),
      })
      if (answer.refused || answer.decision === "block") throw new Error(answer.refused ?? answer.reason)
      const text = take(input.sessionID, answer)
      if (text) {
        output.parts.push({
          id: `prt_${Date.now().toString(16)}watchroom`, sessionID: input.sessionID,
          messageID: output.message.id, type: "text", text, synthetic: true,
        })
      }
    },
    "tool.execute.before": async (input, output) => {
      open.set(input.callID, input.sessionID)
      const answer = await hook("PreToolUse", input.sessionID, {
        tool_name: nameOf(input.tool), tool_use_id: input.callID,
        tool_input: argumentsOf(input.tool, output.args),
      })
      const decided = answer.hookSpecificOutput ?? {}
      if (answer.refused || decided.permissionDecision === "deny") {
        open.delete(input.callID)
        throw new Error(answer.refused ?? decided.permissionDecisionReason ?? "refused")
      }
      if (decided.updatedInput) {
        const changed = rename(decided.updatedInput, reverse(TOOLS[input.tool]?.[1] ?? {}))
        Object.assign(output.args, changed)
      }
    },
    "tool.execute.after": async (input, output) => {
      open.delete(input.callID)
      const answer = await hook("PostToolUse", input.sessionID, {
        tool_name: nameOf(input.tool), tool_use_id: input.callID,
        tool_input: argumentsOf(input.tool, input.args), tool_response: output.output ?? "",
      })
      if (typeof output.output !== "string") return keep(input.sessionID, answer)
      const text = take(input.sessionID, answer)
      if (text) output.output += `\\n\\n${text}`
    },
  }
}
"""


def _translate_line(line: Event) -> tuple[ClientEvent, ...]:
    return ()


def _find_transcript(event: Event) -> str:
    return ""


def write_plugin(hooks: Mapping[str, Json]) -> str:
    """Return the plugin that runs ``hooks``, the groups of each event."""
    lines: dict[str, Json] = {}
    for event, groups in hooks.items():
        group = groups[0] if isinstance(groups, list) else {}
        own = group.get("hooks") if isinstance(group, Mapping) else None
        entry = own[0] if isinstance(own, list) else {}
        if isinstance(entry, Mapping):
            lines[event] = {"line": text_of(entry, "command"), "seconds": entry.get("timeout")}
    return _PLUGIN % json.dumps(lines, indent=1)


def describe(parts: LaunchParts, given: Sequence[str], environment: Mapping[str, str]) -> LaunchWords:
    """Return the command line that starts opencode. Plugin and server are in settings in its environment,
    besides the person's own settings there. Raise ValueError."""
    own: Json = {}
    if text := environment.get(_CONTENT, ""):
        try:
            own = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(_CONTENT) from error
    plugin = f"file://{parts.keep(write_plugin(parts.hooks), '.js')}"
    servers: dict[str, Json] = {}
    for name, entry in parts.servers.items():
        fields = object_of({"entry": entry}, "entry")
        words = fields.get("args")
        command = [fields.get("command"), *(words if isinstance(words, list) else [])]
        servers[name] = {"type": "local", "command": command, "enabled": True}
    if not isinstance(own, Mapping):
        raise ValueError(_CONTENT)
    settings = merge_configuration(own, {"plugin": [plugin], "mcp": servers})
    return LaunchWords(tuple(given), {_CONTENT: json.dumps(settings), **parts.environment})


def _events() -> dict[str, int]:
    events = {
        **COMMON_EVENTS,
        "PostToolUseFailure": TIMEOUT_SECONDS,
        "SubagentStart": TIMEOUT_SECONDS,
        "SubagentStop": TIMEOUT_SECONDS,
        "Stop": TIMEOUT_SECONDS,
        STOP_FAILURE: TIMEOUT_SECONDS,
    }
    # opencode asks people itself, and a plugin cannot wait there.
    del events[PERMISSION]
    return events


def _describe_use(event: Event) -> ToolUse:
    """Return the intended effects of the call of ``event`` on files. The texts of writes and patches can be
    replaced."""
    tool = text_of(event, "tool_name")
    if tool != _PATCH_TOOL:
        return claude.describe_use(event)._replace(takes_texts=tool == "Write")
    writes = list_patch_writes(event, text_of(object_of(event, "tool_input"), _PATCH))
    if writes is None:
        return ToolUse("command")
    # opencode itself refuses a patch without files.
    return ToolUse("write", writes, takes_texts=True) if writes else NOTHING


def _describe_result(event: Event) -> ToolEffects:
    """Return the actual effects of the call of ``event``. A read returns a text with numbered lines."""
    result = claude.describe_result(event)
    if text_of(event, "tool_name") != "Read" or result.is_failed:
        return result
    said = text_of(event, "tool_response")
    numbered = _NUMBERED_LINE.findall(said)
    if not numbered:
        return result
    first, last = int(numbered[0][0]), int(numbered[-1][0])
    result = result._replace(text="\n".join(line for _, line in numbered))
    if first == 1 and _END_OF_FILE in said[-_MAX_END:]:
        return result
    return result._replace(lines=(max(0, first - 1), last))


def _replace_texts(event: Event, texts: Sequence[NewText]) -> Mapping[str, Json]:
    """Return the arguments of the call of ``event`` with replaced texts."""
    if text_of(event, "tool_name") != _PATCH_TOOL:
        return claude.replace_texts(event, texts)
    given = object_of(event, "tool_input")
    return {**given, _PATCH: replace_patch_texts(event, text_of(given, _PATCH), texts)}


ADAPTER: Final = ClientAdapter(
    "opencode",
    AcpSupport(
        ("opencode", "acp"), install="npm install -g opencode-ai", registry=("opencode",), tried="1.18.33"
    ),
    HookSupport(
        servers=_NO_TABLE,
        environment=_NO_TABLE,
        hooks=_NO_TABLE,
        events=_events(),
        translate_hook=claude.translate_hook,
        translate_line=_translate_line,
        find_transcript=_find_transcript,
        resume_turn=block,
        takes_arguments=True,
        describe_use=_describe_use,
        describe_result=_describe_result,
        replace_texts=_replace_texts,
        has_session_file=False,
        reports_limits=True,
        tried="1.18.33",
        untried=("parked",),
    ),
    LaunchSupport(
        "opencode",
        "opencode",
        "npm install -g opencode-ai",
        describe,
        "agent attach auth completion db debug export github import mcp models plug plugin providers session"
        " stats uninstall upgrade",
        ("run",),
        opening=("--prompt",),
        # No `fork`: a copy of a session works in the folder of the original, as of opencode 1.18.33.
    ),
)
