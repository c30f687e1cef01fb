"""A simulated client. Like Claude Code and Codex, it calls hooks before and after each change of a file."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from watchroom.agents.clients import claude
from watchroom.agents.clients.attachment import Attachment
from watchroom.agents.clients.hook_answers import (
    AFTER,
    BEFORE,
    END,
    FAILURE,
    PROMPT,
    STOP,
    HookAnswer,
    changed_arguments,
)
from watchroom.features.sessions.runtime.threads import run_in_thread
from watchroom.features.trees.patches import apply_update, parse_patch
from watchroom.model import Json
from watchroom.platform.child_process import run_child
from watchroom.workspace import Workspace

MODEL: Final = "simulated"
_COMMAND_SECONDS: Final = 60.0
_NOT_FOUND: Final = "String to replace not found in file."
_CLAUDE: Final = claude.ADAPTER.name


class Ended(Exception):  # a signal to the player, not an error
    """A person has ended the agent."""


class SimulatedClient:
    """The client of ``agent``, in ``folder``. For use on one event loop.

    - ``client``: ``claude`` or ``codex``.
    - ``random``: the generator for the number of tokens of each request to the model.
    """

    def __init__(
        self, workspace: Workspace, agent: str, client: str, folder: Path, session: str, random: Random
    ) -> None:
        self._folder = folder
        self._client = client
        self._session = session
        self._random = random
        self._attachment = Attachment(workspace, agent, client, is_owner=True)
        self._calls = (f"{agent}-call-{number}" for number in itertools.count(1))
        self._messages = (f"{agent}-message-{number}" for number in itertools.count(1))
        self._read: dict[str, str] = {}

    async def prompt(self, text: str) -> None:
        """Begin a turn with ``text``."""
        await self._hook(PROMPT, prompt=text)

    async def say(self, text: str) -> None:
        """Report ``text`` as a message of the model, in the client's transcript."""
        name, used = next(self._messages), self._random.randint(60, 400)
        given = self._random.randint(2_000, 6_000)
        session = await run_in_thread(self._attachment.find_session, self._event(STOP))
        if session is None or not text:
            return
        if self._client == _CLAUDE:
            usage: Json = {"input_tokens": given, "output_tokens": used}
            content: Json = [{"type": "text", "text": text}]
            message: Json = {"id": name, "model": MODEL, "content": content, "usage": usage}
            await self._attachment.record_line(session, {"type": "assistant", "message": message})
            return
        output: Json = [{"type": "output_text", "text": text}]
        payload: Json = {"type": "message", "role": "assistant", "id": name, "content": output}
        await self._attachment.record_line(session, {"type": "response_item", "payload": payload})
        tokens: Json = {"input_tokens": given, "output_tokens": used}
        await self._hook("PostModelRequest", turn_id=name, model=MODEL, token_usage=tokens)

    async def read(self, name: str) -> None:
        """Read the file ``name``."""
        asked = await self._ask("Read", {"file_path": self._path(name)})
        if asked is None:
            return
        call, given = asked
        text = self._text(name)
        self._read[name] = text
        lines = text.count("\n")
        file: Json = {"content": text, "startLine": 1, "numLines": lines, "totalLines": lines}
        await self._report("Read", call, given, {"file": file})

    async def edit(self, name: str, old: str, new: str) -> None:
        """Replace the passage ``old`` of the file ``name``."""
        wanted = {"file_path": self._path(name), "old_string": old, "new_string": new}
        asked = await self._ask("Edit", wanted)
        if asked is None:
            return
        call, given = asked
        text = self._text(name)
        if text.count(old) != 1:
            await self._hook(FAILURE, tool_name="Edit", tool_use_id=call, tool_input=given, error=_NOT_FOUND)
            return
        self._write(name, text.replace(old, new))
        await self._report("Edit", call, given, {"originalFile": text, "newString": new})

    async def write(self, name: str, text: str) -> None:
        """Write the whole file ``name``."""
        asked = await self._ask("Write", {"file_path": self._path(name), "content": text})
        if asked is None:
            return
        call, given = asked
        content = str(given.get("content", text))
        before = self._find_text(name)
        self._write(name, content)
        self._read[name] = content
        kind = "create" if before is None else "update"
        result: Json = {"type": kind, "content": content, "originalFile": before}
        await self._report("Write", call, given, result)

    async def rewrite(self, name: str, old: str, new: str) -> None:
        """Write the whole file ``name`` with the text that the agent read, but with ``new`` instead of
        ``old``."""
        await self.write(name, self._read[name].replace(old, new))

    async def run(self, command: str) -> None:
        """Run ``command`` in a shell."""
        asked = await self._ask("Bash", {"command": command})
        if asked is None:
            return
        call, given = asked
        line = str(given.get("command", command))
        done = await run_in_thread(
            lambda: run_child(["/bin/sh", "-c", line], folder=str(self._folder), timeout=_COMMAND_SECONDS)
        )
        printed = (done.output + done.errors).decode(errors="replace")
        is_claude = self._client == _CLAUDE
        if done.status and is_claude:
            error = f"Exit code {done.status}\n{printed}"
            await self._hook(FAILURE, tool_name="Bash", tool_use_id=call, tool_input=given, error=error)
            return
        result: Json = {"stdout": printed, "stderr": ""} if is_claude else printed
        await self._report("Bash", call, given, result)

    async def patch(self, patch: str) -> None:
        """Apply ``patch``, as Codex does."""
        asked = await self._ask("apply_patch", {"command": patch})
        if asked is None:
            return
        call, given = asked
        for file in parse_patch(str(given.get("command", patch))):
            if file.kind == "delete":
                (self._folder / file.path).unlink()
                continue
            after = file.text if file.kind == "add" else apply_update(file, self._text(file.path))
            if after is None:
                # Codex calls no hook after a failed patch.
                return
            self._write(file.path, after)
        await self._report("apply_patch", call, given, "Success.")

    async def stop(self) -> str:
        """End the turn. Return the prompt of the next turn. Claude Code waits for people's messages. For
        Codex, which waits at its terminal, the result is empty."""
        answer = await self._hook(STOP, may_wait=True)
        return answer.error or str((answer.said or {}).get("reason", ""))

    async def is_idle(self) -> bool:
        """Return whether the agent's turn has ended."""
        session = await run_in_thread(self._attachment.find_session, self._event(STOP))
        return session is not None and await run_in_thread(lambda: session.status) == "idle"

    async def end(self) -> None:
        """End the session."""
        await self._hook(END, reason="other")

    async def _ask(self, tool: str, arguments: Mapping[str, Json]) -> tuple[str, Mapping[str, Json]] | None:
        """Ask whether a call can be made. Return its id and its arguments, None if it is refused. Raise
        `Ended`."""
        call = next(self._calls)
        answer = await self._hook(BEFORE, tool_name=tool, tool_use_id=call, tool_input=arguments)
        said = answer.said or {}
        if said.get("continue") is False:
            raise Ended
        own = said.get("hookSpecificOutput")
        if isinstance(own, Mapping) and own.get("permissionDecision") == "deny":
            return None
        return call, changed_arguments(answer) or arguments

    async def _report(self, tool: str, call: str, given: Mapping[str, Json], response: Json) -> None:
        await self._hook(AFTER, tool_name=tool, tool_use_id=call, tool_input=given, tool_response=response)

    async def _hook(self, name: str, *, may_wait: bool = False, **more: Json) -> HookAnswer:
        return await self._attachment.handle(self._event(name, **more), may_wait=may_wait)

    def _event(self, name: str, **more: Json) -> dict[str, Json]:
        event = {"hook_event_name": name, "session_id": self._session, "cwd": str(self._folder), **more}
        # The events have the form in which a client sends them.
        parsed: dict[str, Json] = json.loads(json.dumps(event))
        return parsed

    def _path(self, name: str) -> str:
        return str(self._folder / name)

    def _find_text(self, name: str) -> str | None:
        return self._text(name) if (self._folder / name).exists() else None

    def _text(self, name: str) -> str:
        return (self._folder / name).read_bytes().decode()

    def _write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
