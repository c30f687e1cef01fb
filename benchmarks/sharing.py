"""Many agents at once, in one process and in several: ``python benchmarks/sharing.py``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from statistics import median
from threading import Barrier, Thread

from measure import Measure, kilobyte, percentile, scratch, table
from watchroom import Toolbox, Workspace

_FILES = 10
_TOOL = "save_to_my_workspace"


def _agent(n: int) -> str:
    return f"agent{n:02d}"


def _save(tools: Toolbox, n: int) -> None:
    result = tools.dispatch_tool_call(_TOOL, {"filename": f"{n % _FILES}.md", "content": kilobyte(n)})
    if not result["success"]:
        raise RuntimeError(result["message"])


def threads(agents: int = 64, each: int = 30, rounds: int = 5) -> list[Measure]:
    """Measure ``agents`` in one process, each on its own thread with its own files, beside one agent."""
    with scratch() as folder, Workspace.open(folder, agents=map(_agent, range(agents))) as workspace:
        boxes = [workspace.tools(_agent(n)) for n in range(agents)]
        for n in range(400):
            _save(boxes[0], n)
        alone, together = [], []
        for _ in range(rounds):
            alone.append(_throughput(boxes[:1], each * agents // 4))
            together.append(_throughput(boxes, each))
    ratio = median(many / one for many, one in zip(together, alone, strict=True))
    remark = f"{median(together):,.0f} and {median(alone):,.0f} saves a second"
    return [Measure(f"{agents} agents ÷ 1 agent, saves a second", ratio, "×", 2.5, "≥", remark)]


def _throughput(boxes: list[Toolbox], each: int) -> float:
    """Return the saves per second of all agents together."""
    barrier = Barrier(len(boxes) + 1)

    def run(tools: Toolbox) -> None:
        barrier.wait()
        for n in range(each):
            _save(tools, n)

    workers = [Thread(target=run, args=(tools,)) for tools in boxes]
    for worker in workers:
        worker.start()
    barrier.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    return each * len(boxes) / (time.perf_counter() - start)


def processes(count: int = 8, each: int = 400) -> list[Measure]:
    """Measure ``count`` processes, one agent each, on one workspace."""
    with scratch() as folder:
        with Workspace.open(folder, agents=map(_agent, range(count))) as workspace:
            tools = workspace.tools(_agent(0))
            for n in range(400):
                _save(tools, n)
            alone = _throughput([tools], each)
        command = [sys.executable, __file__, "--work", folder]
        workers = [
            subprocess.Popen(
                [*command, _agent(n), str(each)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for n in range(count)
        ]
        for worker in workers:
            _line(worker.stdout)
        for worker in workers:
            if worker.stdin:
                worker.stdin.write("go\n")
                worker.stdin.flush()
        reports = [json.loads(worker.communicate()[0]) for worker in workers]
    begin = min(report["begin"] for report in reports)
    end = max(report["end"] for report in reports)
    waits = [wait for report in reports for wait in report["waits"]]
    together = count * each / (end - begin)
    remark = f"{together:,.0f} and {alone:,.0f} saves a second; p99 {percentile(waits, 99) * 1e3:.1f} ms"
    return [
        Measure(f"{count} processes ÷ 1 thread, saves a second", together / alone, "×", 1, "≥", remark),
        Measure(f"{count} processes, longest wait", max(waits) * 1e3, "ms", 100),
    ]


def calls(count: int = 400) -> list[Measure]:
    """Measure the CPU time of a call with all its rows and files, including those written later."""
    with scratch() as folder, Workspace.open(folder, agents=["alice", "bob"]) as workspace:
        tools = workspace.tools("alice")

        def call_each(n: int) -> None:
            text = kilobyte(n)
            for tool, arguments in (
                ("collab_read", {"filepath": "plan.md"}),
                ("collab_write", {"filepath": "plan.md", "content": text, "message": "work"}),
                (_TOOL, {"filename": f"{n % _FILES}.md", "content": text}),
                ("handoff_file", {"to_agent": "bob", "filename": "a.md", "content": text, "message": "m"}),
            ):
                tools.dispatch_tool_call(tool, arguments)

        for n in range(100):
            call_each(n)
        workspace.flush()
        start = time.process_time()
        for n in range(count // 4):
            call_each(n)
        workspace.flush()
        spent = time.process_time() - start
    remark = "Reading and writing a shared file, a private file and a handoff"
    return [Measure("processor time of a tool call", spent / count * 1e3, "ms", 4, remark=remark)]


def _line(lines: Iterable[str] | None) -> str:
    return next(iter(lines or ()), "")


def _work(folder: str, agent: str, each: int) -> None:
    with Workspace.open(folder, scan=False) as workspace:
        tools = workspace.tools(agent)
        print("ready", flush=True)
        sys.stdin.readline()
        begin = time.monotonic()
        waits = []
        for n in range(each):
            start = time.perf_counter()
            _save(tools, n)
            waits.append(time.perf_counter() - start)
        end = time.monotonic()
    print(json.dumps({"begin": begin, "end": end, "waits": waits}), flush=True)


def measure() -> list[Measure]:
    return [*threads(), *processes(), *calls()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        _work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        print(table(measure()))
