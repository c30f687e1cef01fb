"""Attached clients work while their service, relays and hooks are killed: ``python -m benchmarks attached
[--kills N] [--agents N] [--seed N]``.

Afterwards the journal must have each acknowledged write once and no write twice, and every allowed call must
have a permission. Linux only.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import psutil
from measure import scratch
from own_service import hook_lines, own_service, server_command
from progress import ProgressBar
from watchroom import Workspace
from watchroom.agents.clients import client_program
from watchroom.errors import WatchroomError
from watchroom.features.requests.rows import decide_all
from watchroom.kernel.call_context import CallContext
from watchroom.model import ASK, Row
from watchroom.platform import detect_platform

_PATIENCE: Final = 120.0
"""Timeout of a call."""
_GAP_SECONDS: Final = 0.15
"""Mean seconds between two kills."""
_KINDS: Final = ("run", "run", "deny", "ask")
"""The kinds of calls, by their verdict in the policy. A person answers ``ask``."""
_POLICY: Final = """
[[policy.rules]]
command = "deny*"
verdict = "deny"
[[policy.rules]]
command = "ask*"
verdict = "ask"
"""
_VICTIMS: Final = ("services", "relays", "hooks", "hooks")
_BLOCKED: Final = 2
"""The exit status of a hook that refuses its call."""
_RUNNING: Final = 0
_PERSON: Final = "human:ann"


def main(arguments: list[str]) -> int:
    """Torment attached clients, and print the result. Return 1 if there are problems."""
    parser = argparse.ArgumentParser(prog="benchmarks attached", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="of processes (default: 1000)")
    parser.add_argument("--agents", type=int, default=8, help="attached (default: 8)")
    parser.add_argument("--seed", type=int, default=1, help="decides who is killed when (default: 1)")
    given = parser.parse_args(arguments)
    agents = [f"agent{number}" for number in range(given.agents)]
    with scratch() as folder, own_service():
        root, told = Path(folder, "team"), Path(folder, "told")
        told.mkdir()
        with Workspace.open(root, agents=agents) as workspace:
            config = root / ".watchroom" / "config.toml"
            config.write_text(config.read_text() + _POLICY)
            workspace.scan()
            done = _torment(workspace, agents, told, given.kills, random.Random(given.seed))
        problems = _find_problems(root, agents, told, done)
    print(", ".join(f"{count:,} {what}" for what, count in sorted(done.items())))
    print(*(problems or ["nothing is wrong"]), sep="\n")
    return int(bool(problems))


def _torment(
    workspace: Workspace, agents: Sequence[str], told: Path, kills: int, chance: random.Random
) -> Counter[str]:
    """Let clients work until ``kills`` of their processes are killed. Return the kills by kind."""
    done: Counter[str] = Counter()
    context, progress, began = get_context("fork"), ProgressBar(), time.monotonic()
    ending = context.Event()
    clients = [
        context.Process(target=_work, args=(workspace.root, agent, told / agent, ending)) for agent in agents
    ]
    for each in clients:
        each.start()
    with _answering(workspace, done):
        while (number := sum(done[f"{kind} killed"] for kind in {*_VICTIMS})) < kills:
            time.sleep(chance.uniform(0, 2 * _GAP_SECONDS))
            if killed := _kill_one([each.pid or 0 for each in clients], chance):
                done[f"{killed} killed"] += 1
            if not all(each.is_alive() for each in clients):
                done["clients ended"] += 1
                break
            passed = time.monotonic() - began
            left = passed / (number + 1) * (kills - number)
            progress.show(number / kills, left, f"{number} kills")
        ending.set()
        for each in clients:
            each.join(_PATIENCE)
            if each.is_alive():
                done["clients hang"] += 1
                each.kill()
    progress.clear()
    return done


def _kill_one(clients: Sequence[int], chance: random.Random) -> str | None:
    """Kill the service, or a process of a client. Return its kind, None if there was none."""
    kind = chance.choice(_VICTIMS)
    found: list[psutil.Process] = []
    with suppress(psutil.Error):
        if kind == "services":
            pid, started = client_program.service_process()
            # The id of an ended service may be reused by another process.
            is_there = pid and detect_platform().process_start(pid) == started
            found = [psutil.Process(pid)] if is_there else []
        for client in clients if kind != "services" else ():
            children = psutil.Process(client).children()
            for each in [each for each in children if _is_relay(each) == (kind == "relays")]:
                found += [each, *each.children(recursive=True)]
    with suppress(psutil.Error):
        if found:
            chance.choice(found).kill()
            return kind
    return None


def _is_relay(process: psutil.Process) -> bool:
    return "mcp" in process.cmdline()


@contextmanager
def _answering(workspace: Workspace, done: Counter[str]) -> Iterator[None]:
    """Approve every second request within the context, and decline the others."""
    ending = threading.Event()

    def answer() -> None:
        seq = 0
        while not ending.wait(0.05):
            for row in workspace.journal.rows(seq, limit=1000):
                seq = row.seq
                if row.tool == ASK and row.version == 1:
                    is_approved = seq % 2 == 0
                    decided = decide_all(workspace.requests.read(row), is_approved, "")
                    with suppress(WatchroomError):
                        workspace.requests.answer(CallContext(_PERSON), seq, decided)
                        done["calls approved" if is_approved else "calls declined"] += 1

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


# The clients


def _work(root: str, agent: str, told: Path, ending: Any) -> None:
    """Act as the client of ``agent``: run hooks and call tools until ``ending`` is set. ``told`` gets a line
    of JSON for each ended call."""
    with told.open("a") as log:
        client = _Client(root, agent)
        number = 0
        while not ending.is_set():
            number += 1
            for line in client.do(number):
                log.write(json.dumps(line) + "\n")
                log.flush()
        client.close()


class _Client:
    """A client like Claude Code, whose calls do nothing."""

    def __init__(self, root: str, agent: str) -> None:
        self._agent = agent
        self._lines = hook_lines(root, agent, is_strict=True)
        self._server = [*server_command(root, agent), "--strict"]
        self._relay: subprocess.Popen[bytes] | None = None
        self._hook("UserPromptSubmit", prompt="Go")

    def do(self, number: int) -> Iterator[Mapping[str, object]]:
        """Make the call ``number``, and write a file. Yield the result of each."""
        kind = _KINDS[number % len(_KINDS)]
        call = {
            "tool_name": "Bash",
            "tool_use_id": f"{self._agent}-{number}",
            "tool_input": {"command": f"{kind} {number}"},
        }
        status, said = self._hook("PreToolUse", **call)
        yield {"hook": kind, "call": call["tool_use_id"], "status": status, "said": said}
        if status == _RUNNING and '"deny"' not in said:
            status, said = self._hook("PostToolUse", **call, tool_response="ok")
            yield {"hook": "result", "call": call["tool_use_id"], "status": status, "said": said}
        path = f"{self._agent}-{number}.md"
        arguments = {"filepath": path, "content": path, "message": "m"}
        yield {"path": path, "answer": self._call(number, "collab_write", arguments)}

    def close(self) -> None:
        if self._relay is not None:
            self._end_relay(self._relay)

    def _hook(self, event: str, **more: object) -> tuple[int, str]:
        given = json.dumps(
            {"hook_event_name": event, "session_id": _session(self._agent), "cwd": "/", **more}
        )
        try:
            ended = subprocess.run(
                ["/bin/sh", "-c", self._lines[event]],
                input=given + "\n",
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, "it hangs"
        # A client reads only the standard output of a hook that allowed its call. A shell reports a killed
        # process on the other stream.
        said = ended.stdout if ended.returncode == _RUNNING else ended.stdout or ended.stderr[-300:]
        return ended.returncode, said.strip()

    def _call(self, number: int, tool: str, arguments: Mapping[str, object]) -> str:
        """Return "made", "refused", or why the result is unknown."""
        params = {"name": tool, "arguments": arguments}
        try:
            relay = self._relay or self._start_relay()
            self._send(relay, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            answer = self._receive(relay, number)
        except (OSError, EOFError):
            self.close()
            return "the relay ended"
        except TimeoutError:
            self.close()
            return "it hangs"
        if "error" in answer:
            return str(answer["error"]["code"])
        return "made" if answer["result"]["structuredContent"]["success"] else "refused"

    def _start_relay(self) -> subprocess.Popen[bytes]:
        relay = self._relay = subprocess.Popen(
            self._server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        self._send(relay, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
        self._receive(relay, 0)
        self._send(relay, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        return relay

    def _end_relay(self, relay: subprocess.Popen[bytes]) -> None:
        self._relay = None
        relay.kill()
        relay.communicate()

    @staticmethod
    def _send(relay: subprocess.Popen[bytes], message: Mapping[str, object]) -> None:
        assert relay.stdin is not None
        relay.stdin.write(json.dumps(message).encode() + b"\n")
        relay.stdin.flush()

    @staticmethod
    def _receive(relay: subprocess.Popen[bytes], number: int) -> dict[str, Any]:
        """Return the answer to ``number``. Raises EOFError, TimeoutError."""
        assert relay.stdout is not None
        while True:
            if not select.select([relay.stdout], [], [], _PATIENCE)[0]:
                raise TimeoutError
            line = relay.stdout.readline()
            if not line:
                raise EOFError
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == number and "method" not in answer:
                return answer


def _session(agent: str) -> str:
    return f"session-of-{agent}"


# The oracle


def _find_problems(root: Path, agents: Sequence[str], told: Path, done: Counter[str]) -> list[str]:
    """Compare the clients' answers with the journal. Return the problems."""
    with Workspace.open(root, create=False) as workspace:
        rows: list[Row] = []
        while found := workspace.journal.rows(rows[-1].seq if rows else 0, limit=10_000):
            rows += found
        wrong = [str(each) for each in workspace.verify()]
    written = Counter(row.path for row in rows if row.tool == "collab_write" and row.version)
    results = Counter(
        str(row.detail.get("idempotency_key")).rpartition(" ")[2]
        for row in rows
        if row.zone == "session" and " result " in str(row.detail.get("idempotency_key"))
    )
    approved = {_call_of(row) for row in rows if row.detail.get("outcome") == "approved"}
    wrong += [f"{path} was written {count} times" for path, count in written.items() if count > 1]
    wrong += [
        f"the result of {call} was recorded {count} times" for call, count in results.items() if count > 1
    ]
    for agent in agents:
        for line in (told / agent).read_text().splitlines():
            wrong += _judge(json.loads(line), written, results, approved, done)
    return wrong


def _is_json(said: str) -> bool:
    try:
        json.loads(said)
    except ValueError:
        return False
    return True


def _call_of(answered: Row) -> str:
    """Return the call's id from an answered request. A repeated question has a suffix."""
    return "-".join(answered.path.rpartition("/")[2].split("-")[:2])


def _judge(
    line: Mapping[str, Any],
    written: Counter[str],
    results: Counter[str],
    approved: set[str],
    done: Counter[str],
) -> Iterator[str]:
    if "path" in line:
        answer = line["answer"]
        done[f"writes: {answer}"] += 1
        if answer == "it hangs":
            yield f"the write of {line['path']} hangs"
        if answer == "made" and not written[line["path"]]:
            yield f"{line['path']} was acknowledged and is lost"
        return
    kind, call, status, said = (line[key] for key in ("hook", "call", "status", "said"))
    is_allowed = status == _RUNNING and '"deny"' not in said
    outcome = "allowed" if is_allowed else "denied" if status in (_RUNNING, _BLOCKED) else "killed"
    done[f"hooks {kind}: {outcome}"] += 1
    if status == _RUNNING and said and not _is_json(said):
        yield f"the answer to {call} cannot be read: {said}"
    if said == "it hangs":
        yield f"the hook of {call} hangs"
    if status == 1:
        yield f"the hook of {call} failed: {said}"
    if is_allowed and (kind == "deny" or (kind == "ask" and call not in approved)):
        yield f"{call} ({kind}) was allowed by nobody: {said}"
    if kind == "result" and status == _RUNNING and not results[call]:
        yield f"the result of {call} was acknowledged and is lost"
