"""The proxy gives access to a few hosts only: tested alone, and from inside of the sandbox."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox.processes import Held
from watchroom.platform.sandbox.backend import ProxySocket, SandboxBackend
from watchroom.platform.sandbox.limits import ResourceLimits
from watchroom.platform.sandbox.proxy import Proxy, Streams, connect_public
from watchroom.platform.sandbox.runner import CommandResult, run_command
from watchroom.texts import catalogue

HOSTS = ("example.org", "*.example.com")
SAID = catalogue("en")


class Upstream:
    """A host that reports the request and the host name that it received."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.heads: list[str] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    async def reach(self, host: str, port: int) -> Streams:
        self.asked.append((host, port))
        return await asyncio.open_connection(*self._listening.getsockname())

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head and (piece := connection.recv(4096)):
                    head += piece
                self.heads.append(head.decode())
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    made = Upstream()
    yield made
    made.close()


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[Proxy]:
    with Proxy(HOSTS, SAID, upstream.reach) as made:
        yield made


def told(proxy: Proxy, request: str) -> str:
    """Return its answer."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(proxy.path)
        asking.settimeout(20)
        asking.sendall(request.encode())
        answer = b""
        while piece := asking.recv(4096):
            answer += piece
        return answer.decode()


def inside(backend: SandboxBackend, folder: Path, proxy: Proxy, command: str) -> CommandResult:
    return run_command(
        command,
        str(folder),
        backend=backend,
        limits=ResourceLimits(seconds=20),
        network=ProxySocket(proxy.path),
    )


def python(program: str) -> str:
    return f"python3 -c {shlex.quote(program)}"


def fetching(url: str) -> str:
    return python(f"from urllib.request import urlopen; print(urlopen({url!r}).read().decode())")


def test_a_command_reaches_an_allowed_host(
    bubblewrap: SandboxBackend, folder: Path, proxy: Proxy, upstream: Upstream
) -> None:
    finished = inside(bubblewrap, folder, proxy, fetching("http://example.org/simple/?a=b"))
    assert (finished.stdout, finished.stderr) == ("hello\n", "")
    assert upstream.asked == [("example.org", 80)]
    assert upstream.heads[0].startswith("GET /simple/?a=b HTTP/1.1\r\nHost: example.org\r\n")
    assert proxy.reached == {"example.org"}


def test_a_command_that_asks_for_another_is_told_its_name(
    bubblewrap: SandboxBackend, folder: Path, proxy: Proxy, upstream: Upstream
) -> None:
    for url in ("http://example.com/", "https://example.com/"):
        finished = inside(bubblewrap, folder, proxy, fetching(url))
        assert finished.exit_code == 1
        assert "example.com is not an allowed host" in finished.stderr
    assert upstream.asked == []
    assert proxy.refused == {"example.com"}


def test_there_is_no_other_way_out(bubblewrap: SandboxBackend, folder: Path, proxy: Proxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        port = listening.getsockname()[1]
        for address in (("127.0.0.1", port), ("192.0.2.1", 80)):
            program = f"import socket; socket.create_connection({address}, 5); print('in')"
            assert inside(bubblewrap, folder, proxy, python(program)).stdout == ""
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_the_command_is_as_it_is_without(bubblewrap: SandboxBackend, folder: Path, proxy: Proxy) -> None:
    """Its exit code, child processes and open files are the same."""
    program = (
        "import os\nfor fd in range(256):\n  try: os.fstat(fd)\n  except OSError: pass\n  else: print(fd)"
    )
    finished = inside(bubblewrap, folder, proxy, f"wait; cat; {python(program)}; exit 7")
    assert (finished.stdout.split(), finished.stderr, finished.exit_code) == (["0", "1", "2"], "", 7)


@pytest.mark.parametrize(
    "target", ["example.org:443", "Example.org.:443", "files.example.com:80", "a.b.example.com:443"]
)
def test_a_tunnel_is_made_to_an_allowed_host(proxy: Proxy, upstream: Upstream, target: str) -> None:
    answer = told(proxy, f"CONNECT {target} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 200 ")
    assert answer.endswith("hello")
    assert [f"{host}:{port}" for host, port in upstream.asked] == [target.lower().replace(".:", ":")]


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("CONNECT example.com:443", 403),
        ("CONNECT evilexample.com:443", 403),
        ("CONNECT example.org.evil.com:443", 403),
        ("CONNECT example.org:22", 403),
        ("GET http://example.org:8080/", 403),
        ("GET http://example.org@evil.com/", 403),
        ("CONNECT *.example.com:443", 400),
        ("CONNECT example.org", 400),
        ("CONNECT [::1]:443", 400),
        ("GET /simple/", 400),
        ("GET ftp://example.org/", 400),
        ("GET file:///etc/passwd", 400),
        ("nonsense", 400),
    ],
)
def test_whatever_else_is_refused(proxy: Proxy, upstream: Upstream, request_line: str, status: int) -> None:
    assert told(proxy, f"{request_line} HTTP/1.1\r\nHost: example.org\r\n\r\n").startswith(
        f"HTTP/1.1 {status} "
    )
    assert upstream.asked == []


def test_a_request_is_made_in_no_other_name(proxy: Proxy, upstream: Upstream) -> None:
    """One address can serve many hosts, and a connection is for one request."""
    told(
        proxy,
        "GET http://example.org/ HTTP/1.1\r\nhost: evil.com\r\nProxy-Authorization: x\r\n"
        "Connection: keep-alive\r\nX-Own: y\r\n\r\n",
    )
    assert upstream.heads == ["GET / HTTP/1.1\r\nHost: example.org\r\nX-Own: y\r\nConnection: close\r\n\r\n"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "fd00::1", "0.0.0.0"]
)  # fmt: skip
def test_an_allowed_name_that_stands_for_a_private_address_is_refused(host: str) -> None:
    with Proxy(("a.b",), SAID, lambda _, port: connect_public(host, port)) as proxy:
        answer = told(proxy, "CONNECT a.b:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403 ")
    assert "no public address" in answer


def test_a_host_that_cannot_be_reached_is_named(upstream: Upstream) -> None:
    async def reach(host: str, port: int) -> Streams:
        raise ConnectionRefusedError

    with Proxy(HOSTS, SAID, reach) as proxy:
        assert "example.org cannot be reached" in told(proxy, "CONNECT example.org:443 HTTP/1.1\r\n\r\n")


def test_it_leaves_nothing_behind() -> None:
    before, threads = Held.now(), set(threading.enumerate())
    with (
        contextlib.closing(Upstream()) as upstream,
        Proxy(HOSTS, SAID, upstream.reach) as proxy,
        socket.socket(socket.AF_UNIX) as waiting,
    ):
        waiting.connect(proxy.path)
        waiting.sendall(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n")
        assert waiting.recv(4096).startswith(b"HTTP/1.1 200 ")
        folder = Path(proxy.path).parent
    assert not folder.exists()
    assert not Held.now().since(before)
    assert set(threading.enumerate()) <= threads
