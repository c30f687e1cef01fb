"""A client that speaks the Agent Client Protocol and does what a script says: JSON lines, nothing else.

Run as ``python scripted_acp_agent.py SCRIPT LOG``: SCRIPT is a JSON list with a list of steps for each turn,
of which the last serves again; each message that comes is a line of LOG. The step "past" of the first turn
lists the updates that report the past of a loaded session.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SESSION = "scripted-1"
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
MODES = [{"id": "default", "name": "Ask"}, {"id": "auto", "name": "Auto"}]
PAST = [
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    for text in ("From before", "And then")
]


class ScriptedAgent:
    """The client, with a list of ``turns``."""

    def __init__(self, turns: list[list[dict[str, Any]]], log: Path) -> None:
        self._turns = turns
        self._log = log
        self._past = next((step["past"] for turn in turns[:1] for step in turn if "past" in step), PAST)
        self._taken = 0
        self._messages = self._read()

    def run(self) -> None:
        for message in self._messages:
            method = message.get("method")
            if method is not None and "id" in message:
                self._send(id=message["id"], **self._response(method))
            if method == "session/load":
                # Some clients report the rest of the past only now.
                for update in self._past[1:]:
                    self._update(**update)
            if method == "session/set_mode":
                self._tell_late()

    def _response(self, method: str) -> dict[str, Any]:
        result = self._result(method)
        return {"error": result["error"]} if "error" in result else {"result": result}

    def _result(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            about = {"name": "scripted", "version": "1.0"}
            return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "agentInfo": about}
        if method == "session/new":
            return {"sessionId": SESSION, "modes": {"currentModeId": "auto", "availableModes": MODES}}
        if method == "session/load":
            for update in self._past[:1]:
                self._update(**update)
            return {"modes": {"currentModeId": "auto", "availableModes": MODES}}
        return self._take_turn() if method == "session/prompt" else {}

    def _take_turn(self) -> dict[str, Any]:
        steps = self._turns[min(self._taken, len(self._turns) - 1)]
        self._taken += 1
        result: dict[str, Any] = {"stopReason": "end_turn"}
        for step in steps:
            ((kind, given),) = step.items()
            if kind == "update":
                self._update(**given)
            elif kind == "ask":
                self._ask(given)
            elif kind == "spawn":
                subprocess.Popen(given, start_new_session=True)
            elif kind == "exit":
                print("it broke", file=sys.stderr, flush=True)
                sys.exit(given)
            elif kind in ("usage", "_meta", "stopReason", "error"):
                result[kind] = given
            elif kind == "loop":
                self._loop(given)
                result["stopReason"] = "cancelled"
        return result

    def _tell_late(self) -> None:
        """Tell more of the past once a pipe is written to, and write to another once that has been handled."""
        for given in (step["late"] for step in self._turns[0] if "late" in step):
            Path(given["begin"]).read_text(encoding="utf-8")
            self._update(**given["update"])
            self._send(id=2000, method="no/such_method", params={})
            next(each for each in self._messages if each.get("id") == 2000)
            Path(given["end"]).write_text("Told", encoding="utf-8")

    def _loop(self, until: str) -> None:
        """Do nothing until a message with the method ``until`` comes."""
        for message in self._messages:
            if message.get("method") == until:
                return

    def _ask(self, call: dict[str, Any]) -> None:
        params = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
        self._send(id=1000, method="session/request_permission", params=params)
        for message in self._messages:
            if message.get("id") == 1000:
                chosen = message["result"]["outcome"].get("optionId", "cancelled")
                status = "completed" if chosen == "yes" else "failed"
                self._update(
                    sessionUpdate="tool_call_update",
                    toolCallId=call["toolCallId"],
                    status=status,
                    rawOutput=chosen,
                )
                return

    def _update(self, **fields: Any) -> None:
        self._send(method="session/update", params={"sessionId": SESSION, "update": fields})

    def _send(self, **message: Any) -> None:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def _read(self) -> Iterator[dict[str, Any]]:
        with self._log.open("a", encoding="utf-8", buffering=1) as log:
            for line in sys.stdin:
                log.write(line)
                yield json.loads(line)


if __name__ == "__main__":
    ScriptedAgent(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2])).run()
