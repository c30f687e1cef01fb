"""The client of models against bare httpx: ``python benchmarks/models.py``.

Streams come from another process over the loopback, so that only reading them is measured.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from statistics import median

import httpx
from measure import Measure, Work, interleaved, middle, ratio, table
from watchroom.runtime.messages import UserMessage
from watchroom.runtime.models import ModelPayload, OpenAICompatible

_CHUNKS = 5_000
_ROUNDS = 9
_IMPORT_ROUNDS = 11
_ASK = ModelPayload(messages=(UserMessage(content="Hi"),))

_MAKE = "from watchroom.runtime.models import OpenAICompatible; OpenAICompatible('http://localhost', 'm')"
_PROGRAMS = {
    "httpx alone": "import httpx; httpx.AsyncClient()",
    "client, unused": _MAKE,
    "client, used": f"{_MAKE}; import httpx; httpx.AsyncClient()",
}
_IN_A_PROCESS = """
import asyncio, json, sys, time
import psutil, watchroom.runtime.models
def size(): return psutil.Process().memory_info().rss / 1024 / 1024
megabytes, begin = size(), time.perf_counter()
exec(sys.argv[1])
print(json.dumps([time.perf_counter() - begin, size() - megabytes]))
"""


def measure() -> list[Measure]:
    streams = {"many events a packet": "packed", "an event a packet": "apart"}
    return [*_loading(), *(_streaming(how, way) for how, way in streams.items())]


def _loading() -> list[Measure]:
    """In fresh processes that have loaded what the client's chunks are made of, pydantic above all."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in _PROGRAMS}
    for _ in range(_IMPORT_ROUNDS):
        for name, program in _PROGRAMS.items():
            done = subprocess.run(
                [sys.executable, "-c", _IN_A_PROCESS, program], capture_output=True, check=True, text=True
            )
            seconds, megabytes = json.loads(done.stdout)
            found[name].append((seconds, megabytes))
    measures = []
    for place, what, unit, scale in ((0, "time", "ms", 1e3), (1, "memory", "MB", 1.0)):
        taken = {name: median(pair[place] for pair in pairs) * scale for name, pairs in found.items()}
        bare, unused, used = taken.values()
        measures += [
            Measure(f"model client: {what} to load, unused / httpx", unused / bare, "×"),
            Measure(
                f"model client: {what} to load, used / httpx",
                used / bare,
                "×",
                remark=", ".join(f"{name} {each:.3g} {unit}" for name, each in taken.items()),
            ),
        ]
    return measures


def _streaming(how: str, way: str) -> Measure:
    """The same bytes through the client, and through what a script would do: lines, and JSON out of them."""
    with _serving(way) as url, asyncio.Runner() as runner:
        client = httpx.AsyncClient(timeout=60)
        runtime = OpenAICompatible(url, "m", client=client)

        async def ours() -> int:
            return sum([1 async for chunk in runtime(_ASK) if chunk.content])

        async def bare() -> int:
            found = 0
            async with client.stream("POST", f"{url}/chat/completions", json={}) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: {"):
                        found += "content" in json.loads(line[6:])["choices"][0]["delta"]
            return found

        contenders = {"ours": _run(runner, ours), "bare": _run(runner, bare)}
        seconds = interleaved(contenders, _ROUNDS, 3)
        runner.run(client.aclose())
    rates = {name: _CHUNKS / middle(rounds) for name, rounds in seconds.items()}
    return Measure(
        f"model client: time to stream / bare httpx ({how})",
        ratio(seconds["ours"], seconds["bare"]),
        "×",
        remark=f"{rates['ours']:,.0f} chunks/s; httpx's lines and json.loads {rates['bare']:,.0f}",
    )


def _run(runner: asyncio.Runner, stream: Callable[[], Awaitable[int]]) -> Work:
    async def whole() -> None:
        if await stream() != _CHUNKS:
            raise RuntimeError("the stream was not read to its end")

    return lambda _: runner.run(whole())


@contextmanager
def _serving(way: str) -> Iterator[str]:
    command = [sys.executable, __file__, "--serve", way]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        finally:
            server.terminate()


def _events() -> Iterator[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m"}
    for n in range(_CHUNKS):
        choice = {"index": 0, "delta": {"content": f" word{n}"}, "logprobs": None, "finish_reason": None}
        yield b"data: %s\n\n" % json.dumps({**head, "choices": [choice], "usage": None}).encode()
    ended = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}
    yield b"data: %s\n\ndata: [DONE]\n\n" % json.dumps({**head, "choices": [ended]}).encode()


async def _request(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))


async def _serve(way: str) -> None:
    pieces = [b"%x\r\n%s\r\n" % (len(each), each) for each in _events()]
    if way == "packed":
        body = b"".join(_events())
        pieces = [b"%x\r\n%s\r\n" % (len(body), body)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while True:
                await _request(reader)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n")
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        asyncio.run(_serve(sys.argv[2]))
    else:
        print(table(measure()))
