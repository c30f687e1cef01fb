"""A client that changes files as Claude Code or Codex does, between the hooks that ask and those that report."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from watchroom import Workspace
from watchroom.agents.clients.attachment import Attachment
from watchroom.features.trees.patches import apply_update, parse_patch


class Refused(Exception):  # an answer
    """The hook refused the call. ``reason``: what the model reads."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ScriptedClient:
    """The client of ``agent``, which works in ``folder``.

    - ``disk``: held while a tool compares a file and writes it, and while a command runs.
    - ``told`` collects what the model gets to read.
    """

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        folder: Path,
        *,
        client: str = "claude",
        session: str = "",
        disk: AbstractContextManager[object] | None = None,
    ) -> None:
        self.agent = agent
        self.folder = folder
        self.disk: AbstractContextManager[object] = disk or nullcontext()
        self.told: list[str] = []
        self._attachment = Attachment(workspace, agent, client, is_owner=True)
        self._patch = "patchText" if client == "opencode" else "command"
        self._session = session or f"session-of-{agent}"
        self._numbers = itertools.count(1)
        self.hook("UserPromptSubmit", prompt="Go")

    def hook(self, event: str, **more: Any) -> Mapping[str, Any]:
        """Send ``event``. Return what the hook prints."""
        given = {"hook_event_name": event, "session_id": self._session, "cwd": str(self.folder), **more}
        answer = asyncio.run(self._attachment.handle(given))
        said: Mapping[str, Any] = answer.said or {}
        specific = said.get("hookSpecificOutput", {})
        if specific.get("additionalContext"):
            self.told.append(specific["additionalContext"])
        found: Mapping[str, Any] = specific
        return found

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Ask whether a call can be made. Return its id, and the arguments with which it is made. Raises
        `Refused`."""
        call = f"{self.agent}-{next(self._numbers)}"
        said = self.hook("PreToolUse", tool_name=tool, tool_use_id=call, tool_input=arguments)
        if said.get("permissionDecision") == "deny":
            raise Refused(said["permissionDecisionReason"])
        return call, said.get("updatedInput", arguments)

    def report(self, tool: str, call: str, arguments: Mapping[str, Any], response: Any) -> None:
        """Report that the call has ended."""
        self.hook(
            "PostToolUse",
            tool_name=tool,
            tool_use_id=call,
            tool_input=arguments,
            tool_response=response,
        )

    def report_result(self, call: str, error: str) -> None:
        """Report the error of ``call`` in the transcript."""
        result = {"type": "tool_result", "tool_use_id": call, "content": error, "is_error": True}
        (session,) = self._attachment.sessions.values()
        line: dict[str, Any] = {"type": "user", "message": {"content": [result]}}
        asyncio.run(self._attachment.record_line(session, line))

    def read(self, name: str) -> str:
        path = self.folder / name
        call, given = self.ask("Read", {"file_path": str(path)})
        text = path.read_bytes().decode().replace("\r\n", "\n")
        count = len(text.splitlines())
        file = {"content": text, "startLine": 1, "numLines": count, "totalLines": count}
        self.report("Read", call, given, {"file": file})
        return text

    def begin_edit(self, name: str, old: str, new: str) -> tuple[str, Mapping[str, Any]]:
        given = {"file_path": str(self.folder / name), "old_string": old, "new_string": new}
        return self.ask("Edit", given)

    def end_edit(self, call: str, given: Mapping[str, Any]) -> bool:
        """Make an edit and report it. Return whether it was possible."""
        original = self._replace(Path(given["file_path"]), given["old_string"], given["new_string"])
        if original is None:
            self.hook(
                "PostToolUseFailure",
                tool_name="Edit",
                tool_use_id=call,
                tool_input=given,
                error="String to replace not found in file.",
            )
            return False
        self.report("Edit", call, given, {"originalFile": original, "newString": given["new_string"]})
        return True

    def _replace(self, path: Path, old: str, new: str) -> str | None:
        """Return the text before ``old`` was replaced, None if it is not there once."""
        with self.disk:
            raw = path.read_bytes().decode() if path.exists() else ""
            original = raw.replace("\r\n", "\n")
            if original.count(old) != 1:
                return None
            text = original.replace(old, new)
            path.write_bytes((text.replace("\n", "\r\n") if "\r\n" in raw else text).encode())
        return original

    def edit(self, name: str, old: str, new: str) -> bool:
        return self.end_edit(*self.begin_edit(name, old, new))

    def begin_write(self, name: str, text: str) -> tuple[str, Mapping[str, Any]]:
        return self.ask("Write", {"file_path": str(self.folder / name), "content": text})

    def end_write(self, call: str, given: Mapping[str, Any]) -> None:
        path = Path(given["file_path"])
        with self.disk:
            original = path.read_bytes().decode() if path.exists() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(given["content"].encode())
        kind = "create" if original is None else "update"
        self.report(
            "Write", call, given, {"type": kind, "content": given["content"], "originalFile": original}
        )

    def write(self, name: str, text: str) -> None:
        self.end_write(*self.begin_write(name, text))

    def begin_bash(self, command: str) -> tuple[str, Mapping[str, Any]]:
        return self.ask("Bash", {"command": command})

    def end_bash(self, call: str, given: Mapping[str, Any]) -> None:
        self.report("Bash", call, given, {"stdout": "", "stderr": ""})

    def bash(self, command: str) -> str:
        """Run a command. Return what it prints."""
        call, given = self.begin_bash(command)
        with self.disk:
            done = subprocess.run(
                ["bash", "-c", given["command"]],
                cwd=self.folder,
                check=False,
                timeout=60,
                capture_output=True,
                text=True,
            )
        self.end_bash(call, given)
        return done.stdout

    def patch(self, text: str) -> bool:
        """Apply a patch as Codex does, and opencode for some models. Return whether it could be applied."""
        call, given = self.ask("apply_patch", {self._patch: text})
        for file in parse_patch(given[self._patch]):
            path = self.folder / file.path
            if file.kind == "delete":
                path.unlink()
            elif file.kind == "add":
                path.write_text(file.text)
            else:
                with self.disk:
                    after = apply_update(file, path.read_bytes().decode())
                    if after is None:
                        # Codex fires no hook after a patch that failed.
                        return False
                    target = self.folder / (file.move_to or file.path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(after.encode())
                    if file.move_to:
                        path.unlink()
        self.report("apply_patch", call, given, "Success.")
        return True

    def stop(self) -> None:
        """End the turn."""
        self.hook("Stop")
