"""The cost of an attached agent: the time of its hooks, and the memory of its server and of the service.

A hook is timed as a client starts it, by a shell. The baseline is a shell that starts curl without a request.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any, Final

from dashboard import marker, open_command, screen_delays
from measure import Measure, clocked, percentile, sampled, scratch
from own_service import hook_lines, own_service, server_command
from timed_terminal import Terminal
from watchroom import Workspace
from watchroom.agents.clients import client_program

_HOOKS: Final = 200
_AGENTS: Final = 50
_MEGABYTE: Final = 1024 * 1024
_START_SECONDS: Final = 1.5
_KILLS: Final = 5
_LOAD_SECONDS: Final = 20
_ACTIVITY: Final = "8"
"""The key of the screen that lists all operations."""


def measure() -> list[Measure]:
    """Measure hooks with and without curl and after the end of the service, and 50 attached agents in memory
    and on the screen."""
    measures: list[Measure] = []
    agents = [f"agent{number}" for number in range(_AGENTS)]
    for part in (
        _time_hooks,
        partial(_weigh, agents=agents),
        partial(_time_screen, agents=agents[: _AGENTS // 2]),
        partial(_time_screen, agents=agents),
    ):
        with scratch() as folder, own_service():
            root = os.path.join(folder, "team")
            with Workspace.open(root, agents=agents) as workspace:
                config = os.path.join(root, ".watchroom", "config.toml")
                with open(config, "a", encoding="utf-8") as file:
                    # Disabled, because an agent makes the same call hundreds of times.
                    file.write("\n[breaker]\nsteps = 0\n")
                workspace.scan()
            measures += part(root)
    return measures


def _time_hooks(root: str) -> list[Measure]:
    with_curl, without = (_hook(root, has_curl=each) for each in (True, False))
    with_curl(-1)
    rounds = sampled(
        {
            "curl": clocked(with_curl),
            "program": clocked(without),
            "nothing": clocked(lambda n: _run("curl --version >/dev/null", "")),
        },
        _HOOKS // 20,
        20,
    )
    times = {name: [1000 * each for burst in found for each in burst] for name, found in rounds.items()}
    restarts = [_time_restart(with_curl, number) for number in range(_KILLS)]
    yardstick = f"a shell and curl for nothing: {median(times['nothing']):.0f} ms"
    return [
        Measure("hook, p50", median(times["curl"]), "ms", 20, remark=yardstick),
        Measure("hook, p95", percentile(times["curl"], 95), "ms", 40),
        Measure("hook without curl, p50", median(times["program"]), "ms", 60),
        Measure(
            "hook after the service was killed, slowest",
            max(restarts),
            "s",
            _START_SECONDS,
            remark=f"of {_KILLS}; it starts a new one",
        ),
    ]


def _hook(root: str, *, has_curl: bool) -> Callable[[int], None]:
    """Return a function that runs a hook before a tool call."""
    line = hook_lines(root, "agent0", has_curl=has_curl)["PreToolUse"]

    def run(number: int) -> None:
        _run(line, _event("agent0", "PreToolUse", f"{has_curl}-{number}"))

    return run


def _event(agent: str, name: str, call: str) -> str:
    """Return an event about the command ``call``."""
    event = {
        "hook_event_name": name,
        "session_id": f"session-of-{agent}",
        "cwd": "/",
        "tool_name": "Bash",
        "tool_use_id": call,
        "tool_input": {"command": call},
    }
    return json.dumps(event) + "\n"


def _run(line: str, given: str) -> None:
    subprocess.run(["/bin/sh", "-c", line], input=given.encode(), capture_output=True, check=True)


def _time_restart(hook: Callable[[int], None], number: int) -> float:
    pid, _ = client_program.service_process()
    os.kill(pid, 9)
    begin = time.perf_counter()
    hook(1000 + number)
    return time.perf_counter() - begin


def _weigh(root: str, agents: list[str]) -> list[Measure]:
    """Measure the memory of a relay for each agent, started one after the other."""
    relays = [_Relay(root, agents[0])]
    try:
        service, _ = client_program.service_process()
        together = _memory(service) + _memory(relays[0].process.pid)
        relays += [_Relay(root, agent) for agent in agents[1:]]
        relay = max(_memory(each.process.pid) for each in relays)
        starts = median(each.seconds for each in relays[1:])
        return [
            Measure("relay, until it has answered, p50", 1000 * starts, "ms", 60),
            Measure("memory of the largest relay", relay, "MB", 12),
            Measure("service and relay of one agent", together, "MB", 110),
            Measure(f"service with {len(relays)} agents", _memory(service), "MB", 200),
        ]
    finally:
        for each in relays:
            each.close()


class _Relay:
    """A server started as a client does, after its answer to ``initialize``."""

    def __init__(self, root: str, agent: str) -> None:
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            server_command(root, agent), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        self.process.stdout.readline()
        self.seconds = time.perf_counter() - begin

    def close(self) -> None:
        self.process.communicate()


def _memory(pid: int) -> float:
    """Return the resident memory of a process in MB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(file.read().partition("VmRSS:")[2].split()[0]) * 1024 / _MEGABYTE


def _time_screen(root: str, agents: list[str]) -> list[Measure]:
    """Measure the delay of calls on an open dashboard while each agent runs two hooks per second."""
    context = get_context("fork")
    number, results = context.Value("i", 0), context.Queue()
    with Terminal(open_command(root), 120, 40) as terminal:
        terminal.wait_for_text("live")
        terminal.send(_ACTIVITY)
        terminal.settle()
        since, begin = terminal.mark(), time.monotonic() + 1
        clients = [
            # Each client is a process, because it is identified by that.
            context.Process(target=_work, args=(root, agent, begin + at / len(agents), number, results))
            for at, agent in enumerate(agents)
        ]
        for each in clients:
            each.start()
        found = sorted(pair for _ in clients for pair in results.get())
        for each in clients:
            each.join()
        terminal.settle()
        delays = screen_delays(terminal, since, [(marker(name), moment) for name, moment in found])
    return [
        Measure(f"{len(agents)} agents, event until it is on screen, p50", 1000 * median(delays), "ms"),
        Measure("the same, p95", 1000 * percentile(delays, 95), "ms", 60),
    ]


def _work(root: str, agent: str, begin: float, number: Any, results: Any) -> None:
    """Act as the client of ``agent``. Put the number and the end time of each call into ``results``."""
    line = hook_lines(root, agent)
    found: list[tuple[int, float]] = []
    for turn in range(_LOAD_SECONDS):
        time.sleep(max(0.0, begin + turn - time.monotonic()))
        with number.get_lock():
            # A call is shown by its command when it ends.
            found.append((number.value, time.monotonic()))
            number.value += 1
        _run(line["PostToolUse"], _event(agent, "PostToolUse", marker(found[-1][0])))
        time.sleep(max(0.0, begin + turn + 0.5 - time.monotonic()))
        _run(line["PreToolUse"], _event(agent, "PreToolUse", f"{agent}-{turn}"))
    results.put(found)
