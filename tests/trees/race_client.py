"""A client of a race: it works on its prompt without a terminal, and runs the hooks that its arguments name.

What it does is in the variable ``RACE_ACTS``, a JSON object by the number of its tree:

- ``write``: the texts of files by path.
- ``status``: its exit status.
- ``model``: the model of its transcript.
- ``hangs``: it does not end by itself. ``stubborn``: not on SIGTERM either.
- ``asks``: it asks before it writes, and a person has to answer.
- ``commits``: it commits what it wrote.
- ``says``: it prints this, repeated to three million characters.
- ``starts``: it starts a program in a session of its own, which does not end.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any


def read_hooks(words: list[str]) -> dict[str, Any]:
    """Return the hooks in the settings of Claude Code or Codex, none for other clients."""
    found: dict[str, Any] = {}
    if "--settings" in words:
        found = json.loads(Path(words[words.index("--settings") + 1]).read_text())["hooks"]
    for word, value in itertools.pairwise(words):
        if word == "-c" and value.startswith("hooks."):
            found |= tomllib.loads(value)["hooks"]
    return found


class Client:
    """A client with ``hooks``, whose session has a transcript at ``path``."""

    def __init__(self, hooks: dict[str, Any], path: Path) -> None:
        self._hooks = hooks
        self._path = path
        self._session = path.stem

    def report(self, event: str, **more: Any) -> None:
        """Report ``event`` to its hook."""
        if event not in self._hooks:
            return
        given = {
            "hook_event_name": event,
            "session_id": self._session,
            "cwd": os.getcwd(),
            "transcript_path": str(self._path),
            **more,
        }
        hook = self._hooks[event][0]["hooks"][0]["command"]
        done = subprocess.run(
            ["/bin/sh", "-c", hook], input=json.dumps(given), text=True, capture_output=True
        )
        print(event, done.returncode, done.stdout, done.stderr, flush=True)

    def say(self, model: str) -> None:
        """Write a message with its usage into the transcript."""
        usage = {"input_tokens": 1000, "output_tokens": 100}
        text = [{"type": "text", "text": "Done"}]
        message = {"id": f"m-{self._session}", "model": model, "content": text, "usage": usage}
        self._path.write_text(json.dumps({"type": "assistant", "message": message}) + "\n")

    def write(self, name: str, text: str) -> None:
        path = Path(name).absolute()
        call = {"tool_name": "Write", "tool_use_id": f"call-{name}"}
        call |= {"tool_input": {"file_path": str(path), "content": text}}  # type: ignore[dict-item]
        self.report("PreToolUse", **call)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.report("PostToolUse", **call, tool_response={"type": "create", "content": text})


def main(words: list[str]) -> int:
    end = words.index("--")
    number = os.environ["WATCHROOM_TREE"].rpartition("-")[2]
    acts = json.loads(os.environ.get("RACE_ACTS", "{}")).get(number, {})
    seen = {"words": words[:end], "prompt": words[end + 1 :], "folder": os.getcwd(), "pid": os.getpid()}
    seen |= {"pwd": os.environ["PWD"], "input": sys.stdin.read()}
    place = Path(os.environ["RACE_SEEN"])
    (place / f"{number}.new").write_text(json.dumps(seen))
    (place / f"{number}.new").rename(place / f"{number}.json")
    if acts.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    client = Client(read_hooks(words[:end]), place / f"session-{os.getpid()}.jsonl")
    client.report("SessionStart")
    client.report("UserPromptSubmit", prompt=words[end + 1])
    if "model" in acts:
        client.say(acts["model"])
    if acts.get("asks"):
        call = {"tool_name": "Bash", "tool_input": {"command": "make"}}
        client.report("PreToolUse", tool_use_id="asked", **call)
        client.report("PermissionRequest", **call)
    for name, text in acts.get("write", {}).items():
        client.write(name, text)
    if acts.get("commits"):
        subprocess.run(["git", "add", "--all"], check=True)
        subprocess.run(["git", "commit", "--quiet", "--message", f"work of {number}"], check=True)
    if acts.get("says"):
        print(acts["says"] * (3_000_000 // len(acts["says"])))
    if acts.get("starts"):
        program = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (place / f"{number}.started").write_text(str(program.pid))
    (place / f"{number}.wrote").touch()
    while acts.get("hangs"):
        time.sleep(0.1)
    client.report("Stop")
    client.report("SessionEnd", reason="other")
    return int(acts.get("status", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
