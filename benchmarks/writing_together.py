"""A document that several processes write at once: ``python benchmarks/writing_together.py [EDITS]``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from random import Random
from typing import Final

import psutil
from measure import Measure, scratch, table
from watchroom import Toolbox, Workspace

PROCESSES: Final = 4
EDITS: Final = 3000
"""Edits of each process."""
READ_EVERY: Final = 100
"""Edits after which a writer reads the text again."""
WRITES: Final = 1000
CROWD: Final = 200
"""Agents of one process. Each edits the text as it was some twenty edits ago."""
CROWD_EDITS: Final = 1600
_PATH: Final = "plan.md"


def measure(processes: int = PROCESSES, edits: int = EDITS) -> list[Measure]:
    agents = [f"agent{n}" for n in range(processes)]
    with scratch() as folder:
        with Workspace.open(folder, agents=agents) as workspace:
            tools = workspace.tools(agents[0])
            for name in ("alone", "together"):
                _call(tools, "realtime_create_document", doc_id=name, schema={"body": "rga"})
        alone = _seconds(folder, agents[:1], "alone", edits)
        plain = _seconds(folder, agents[:1], _PATH, min(edits, WRITES))
        together = _seconds(folder, agents, "together", edits)
        with Workspace.open(folder) as workspace:
            began = time.perf_counter()
            problems = workspace.verify()
            verified = time.perf_counter() - began
    if problems:
        raise RuntimeError(problems)
    total = processes * edits
    one, many, write = alone / edits, together / total, plain / min(edits, WRITES)
    remark = f"{edits:,} edits each, the text read every {READ_EVERY}"
    return [
        Measure("an edit of a document, 1 process", one * 1e3, "ms", remark=remark),
        Measure("collab_write of 1 KB, 1 process", write * 1e3, "ms"),
        Measure("an edit ÷ a collab_write, 1 process", one / write, "×"),
        Measure(
            f"an edit of a document, {processes} processes", many * 1e3, "ms", remark="wall time ÷ edits"
        ),
        Measure(f"an edit, {processes} processes ÷ 1 process", many / one, "×"),
        *_crowded(),
        Measure("verify afterwards", verified, "s", remark=f"{total + edits:,} edits in two documents"),
    ]


def _crowded() -> list[Measure]:
    """Measure an edit by a writer who has missed many others' edits, at the beginning and later."""
    random, costs = Random(3), list[float]()
    with scratch() as folder, Workspace.open(folder, agents=[f"agent{n}" for n in range(CROWD)]) as workspace:
        tools = [workspace.tools(f"agent{n}") for n in range(CROWD)]
        _call(tools[0], "realtime_create_document", doc_id="crowd", schema={"body": "rga"})
        waiting: list[tuple[Toolbox, int]] = []
        before = psutil.Process().memory_info().rss
        while len(costs) < CROWD_EDITS:
            reader = random.choice(tools)
            text = str(_call(reader, "realtime_get_field", doc_id="crowd", field_name="body")["value"])
            waiting.append((reader, len(text)))
            if len(waiting) > CROWD // 10:
                writer, length = waiting.pop(random.randrange(len(waiting)))
                edit = {"position": random.randint(0, length), "text": f"line {len(costs)}\n"}
                began = time.process_time()
                on = {"doc_id": "crowd", "field_name": "body"}
                _call(writer, "realtime_edit_text", **on, operation="insert", args=edit)
                costs.append(time.process_time() - began)
        grown = psutil.Process().memory_info().rss - before
    early, late = (sum(part) / len(part) for part in (costs[: CROWD_EDITS // 4], costs[-CROWD_EDITS // 4 :]))
    name = f"an edit of a text that {CROWD} agents of a process edit"
    return [
        Measure(
            name, late * 1e3, "ms", remark="processor time, as its writer saw the text some edits before"
        ),
        Measure(f"{name}, the last ÷ the first quarter", late / early, "×", 1.5),
        Measure(f"memory after {CROWD_EDITS:,} such edits", grown / 2**20, "MB"),
    ]


def _seconds(folder: str, agents: list[str], name: str, count: int) -> float:
    """Return the seconds from the first start to the last end of processes that work on ``name``, one per
    agent."""
    command = [sys.executable, __file__, "--work", folder]
    workers = [
        subprocess.Popen(
            [*command, agent, name, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for agent in agents
    ]
    for worker in workers:
        if worker.stdout:
            worker.stdout.readline()
    for worker in workers:
        if worker.stdin:
            worker.stdin.write("go\n")
            worker.stdin.flush()
    reports = [json.loads(worker.communicate()[0]) for worker in workers]
    return float(max(end for _, end in reports) - min(begin for begin, _ in reports))


def _work(folder: str, agent: str, name: str, count: int) -> None:
    with Workspace.open(folder, scan=False) as workspace:
        tools = workspace.tools(agent)
        print("ready", flush=True)
        sys.stdin.readline()
        begin = time.monotonic()
        if name == _PATH:
            _write(tools, count)
        else:
            _edit(tools, name, count)
        end = time.monotonic()
    print(json.dumps((begin, end)), flush=True)


def _edit(tools: Toolbox, document: str, count: int) -> None:
    """Insert, delete and replace at random places."""
    chance = Random(tools.actor)
    on = {"doc_id": document, "field_name": "body"}
    length = 0
    for turn in range(count):
        if turn % READ_EVERY == 0:
            length = len(str(_call(tools, "realtime_get_field", **on)["value"]))
        start = chance.randint(0, length)
        text = f"{tools.actor} wrote {turn}. "
        operation = chance.choice(("insert", "insert", "delete", "replace"))
        given = {"position": start} if operation == "insert" else {"from": start, "to": start + 8}
        arguments = given if operation == "delete" else {**given, "text": text}
        result = _call(tools, "realtime_edit_text", **on, operation=operation, args=arguments)
        length = int(str(result["length"]))


def _write(tools: Toolbox, count: int) -> None:
    for version in range(count):
        content = f"{tools.actor} wrote {version}. " * 40
        _call(tools, "collab_write", filepath=_PATH, content=content, message="on", expected_version=version)


def _call(tools: Toolbox, tool: str, **arguments: object) -> dict[str, object]:
    result = dict[str, object](tools.dispatch_tool_call(tool, arguments))  # type: ignore[arg-type]
    if not result["success"]:
        raise RuntimeError(result)
    return result


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        _work(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]))
    else:
        print(table(measure(edits=int(sys.argv[1]) if sys.argv[1:] else EDITS)))
