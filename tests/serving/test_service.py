"""The resident service: one for each user, for all workspaces, and replaced without a loss."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import httpx
import pytest
import watchroom
from cli.running import as_typed, spawned
from clients.attached import HELLO, PATIENCE, SESSION, AttachedClient, attendant, told, wait_for
from clients.test_attached import CALL, PATH, answer, decision
from service_process import allow_service, end_service, running_service, service_pid, service_status
from watchroom import Workspace
from watchroom.agents.clients import client_program
from watchroom.errors import WatchroomError
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.model import ASK, MESSAGE
from watchroom.serving.service import link
from watchroom.serving.service.workspaces import ServedWorkspaces

pytestmark = pytest.mark.slow(4)

INITIALIZED: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
DISCOVER: Final = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    with Workspace.open(root, agents=["alice", "bob"]) as opened:
        yield opened


@pytest.fixture
def service() -> Iterator[subprocess.Popen[bytes]]:
    with running_service() as process:
        yield process


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def asked(raw: bytes) -> bytes:
    """What the service answers to ``raw``."""
    with client_program.open_connection() as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while piece := connection.recv(1 << 16):
            said += piece
    return said


def hook_request(root: Path | str, event: object, **fields: str) -> bytes:
    given = [("root", str(root)), ("agent", "alice"), ("client", "claude"), *fields.items()]
    return client_program.request("POST", "/hook", given, json.dumps(event).encode())


class Relayed:
    """A client of the protocol, whose server is the relay."""

    def __init__(self, root: Path, *more: str) -> None:
        command = as_typed("mcp", str(root), "--agent", "alice", *more)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.send(HELLO)
        self.hello = self.receive()
        self.send(INITIALIZED)

    def send(self, message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def call(self, number: int, tool: str, **arguments: object) -> dict[str, Any]:
        self.send_call(number, tool, **arguments)
        return self.receive()

    def send_call(self, number: int, tool: str, **arguments: object) -> None:
        params = {"name": tool, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        self.process.stdout.close()


HASTY: Final = """
import sys
from watchroom.agents.clients import client_program
client_program._START_SECONDS = float(sys.argv[1])
client_program._BUSY_SECONDS = client_program._START_AGAIN_SECONDS = 0.05
sys.exit(client_program.main(sys.argv[2:]))
"""
"""A relay whose timeouts are short. The first argument is its timeout for the start of a service."""


class HastyRelay(Relayed):
    """A client whose relay has short timeouts, and begins to reach a service.

    - ``program``: starts a service
    - ``seconds``: timeout for the start of a service
    - ``stdin``: the descriptor of the relay's standard input, default a pipe
    - ``hello``: the client's first request
    """

    def __init__(
        self,
        root: Path,
        program: Sequence[str] = as_typed(),
        *,
        seconds: float = 0.05,
        stdin: int = subprocess.PIPE,
        hello: object = HELLO,
    ) -> None:
        timed = [sys.executable, "-c", HASTY, str(seconds)]
        command = [*timed, *program, "mcp", str(root), "--agent", "alice"]
        self.process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE)
        if self.process.stdin is not None:
            self.send(hello)

    def is_waiting(self) -> bool:
        """Return whether the relay still runs after several of its timeouts."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(0.6)
        return self.process.returncode is None

    def has_given_up(self) -> bool:
        """Return whether the relay ends with an error although its client runs."""
        with self.process:
            return self.process.wait(PATIENCE) == 1

    def is_served(self) -> bool:
        return "alice" in self.receive()["result"]["instructions"]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop the process within the context, as a machine under load does."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.fixture
def relayed(root: Path, workspace: Workspace, service: object) -> Iterator[Relayed]:
    with closing(Relayed(root)) as client:
        yield client


def test_a_second_service_of_a_user_ends_at_once(service: subprocess.Popen[bytes]) -> None:
    ended = spawned("service", "run")
    assert (ended.returncode, ended.stdout) == (0, "Another service of this user is already running.\n")
    assert service_pid() == service.pid


def test_many_clients_that_find_no_service_start_one(root: Path, workspace: Workspace) -> None:
    allow_service()
    client = AttachedClient(root)
    hooks = [client.begin("UserPromptSubmit", prompt=f"{number}") for number in range(6)]
    assert [client.answer(hook) for hook in hooks] == [None] * 6
    assert service_status()["process"] == service_pid()
    begun = [row.version for row in workspace.journal.rows(limit=1000) if row.path == PATH and row.version]
    assert sorted(begun) == [*range(1, len(begun) + 1)]


def test_the_service_says_what_it_serves_and_is_stopped(
    root: Path, workspace: Workspace, service: Any
) -> None:
    AttachedClient(root).hook("UserPromptSubmit", prompt="Go")
    said = spawned("service", "status").stdout
    assert f"{os.path.realpath(root)}\talice (claude {os.getpid()})" in said
    (shown,) = json.loads(spawned("service", "status", "--json").stdout)["workspaces"]
    assert shown["clients"] == [{"client": "claude", "agents": ["alice"], "process": os.getpid()}]
    assert spawned("service", "stop").returncode == 0
    service.wait(PATIENCE)
    ended = spawned("service", "status")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("No service is running. It starts with")
    assert not os.path.exists(client_program.socket_path())


def test_a_service_that_was_killed_is_replaced_by_the_next_hook(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes]
) -> None:
    client = AttachedClient(root)
    client.hook("UserPromptSubmit", prompt="Go")
    service.kill()
    service.wait()
    assert client.hook("PreToolUse", **CALL) is None
    assert service_status()["process"] != service.pid
    assert workspace.sessions.state("alice", SESSION).status == "running"


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_question_outlives_its_service(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes], ending: signal.Signals
) -> None:
    """The hook asks the next service, and the call waiting for a person all the same."""
    client = AttachedClient(root)
    client.hook("PreToolUse", **CALL)
    waiting = client.begin("PermissionRequest", **{key: CALL[key] for key in ("tool_name", "tool_input")})
    wait_for(workspace, lambda row: row.tool == ASK)
    service.send_signal(ending)
    service.wait(PATIENCE)
    until(lambda: service_status().get("workspaces"))
    assert waiting.poll() is None

    def is_approved() -> bool:
        for asked in [row for row in workspace.journal.rows(limit=1000) if row.tool == ASK]:
            with suppress(WatchroomError):
                answer(workspace, asked, True)
        return waiting.poll() is not None

    until(is_approved)
    assert decision(client.answer(waiting)) == {"behavior": "allow"}


def test_a_client_of_a_newer_version_has_the_service_end(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes]
) -> None:
    older = client_program.request("GET", "/status", []).replace(b"version=", b"version=0.0.1&old=")
    assert b" 200 " in asked(older)
    newer = client_program.request("GET", "/status", []).replace(b"version=", b"version=99.0&own=")
    assert b" 503 " in asked(newer)
    assert service.wait(PATIENCE) == 0


def test_a_damaged_workspace_does_not_affect_another(
    root: Path, workspace: Workspace, service: object, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged"
    with Workspace.open(damaged, agents=["alice"]):
        pass
    for file in (damaged / CONTROL).glob("journal.db*"):
        file.write_bytes(b"no database" * 1000)
    for _ in range(2):
        assert b" 409 " in asked(hook_request(damaged, told("SessionStart")))
        assert AttachedClient(root).hook("PreToolUse", **CALL) is None
    assert [each["root"] for each in service_status()["workspaces"]] == [os.path.realpath(root)]


async def test_a_workspace_that_is_left_while_others_are_closed_ends_nothing(tmp_path: Path) -> None:
    roots = [str(tmp_path / name) for name in ("first", "second")]
    served = ServedWorkspaces(lambda workspace: None)
    for root in roots:
        Workspace.open(root).close()
        await served.get(root)
    _, was_left = await asyncio.gather(served.close_unused(0), served.leave(roots[1]))
    assert was_left
    assert served.all == []


def test_a_workspace_that_was_replaced_is_opened_again(service: object, tmp_path: Path) -> None:
    root = tmp_path / "team"
    for _ in range(2):
        with Workspace.open(root, agents=["alice"]):
            pass
        assert AttachedClient(root).hook("UserPromptSubmit", prompt="Go") is None
        with Workspace.open(root) as workspace:
            assert [*workspace.session_zone.heads("alice")], "the prompt is in this journal"
        shutil.rmtree(root)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /nowhere HTTP/1.1\r\nHost: w\r\n\r\n", b"404"),
        (b"GET /hook?root=relative HTTP/1.1\r\nHost: w\r\n\r\n", b"404"),
        (b"POST /hook?root=relative HTTP/1.1\r\nHost: w\r\nContent-Length: 0\r\n\r\n", b"409"),
        (b"POST /hook?root=/nowhere HTTP/1.1\r\nHost: w\r\nContent-Length: 0\r\n\r\n", b"409"),
        (b"GET /" + b"a" * 140_000 + b" HTTP/1.1\r\nHost: w\r\n\r\n", b"431"),
        (b"GET /?" + b"a=b&" * 1000 + b" HTTP/1.1\r\nHost: w\r\n\r\n", b"400"),
        (b"POST /hook HTTP/1.1\r\nHost: w\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"GET /use?root=ROOT HTTP/1.1\r\nHost: w\r\n\r\n", b"426"),
    ],
)
def test_a_request_that_is_none_is_refused(
    root: Path, workspace: Workspace, service: object, raw: bytes, status: bytes
) -> None:
    assert asked(raw.replace(b"ROOT", os.fsencode(root))).split(b" ")[1] == status
    assert service_status()


def test_a_request_that_may_succeed_later_is_refused_as_such(service: object) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"postgresql://127.0.0.1:{free.getsockname()[1]}/team"
    assert b" 503 " in asked(hook_request(address, told("SessionStart")))


def test_an_event_that_is_too_long_is_refused(service: object) -> None:
    fields = client_program.request("POST", "/hook", [("root", "/nowhere")], b"x").replace(
        b"Content-Length: 1", b"Content-Length: 99999999"
    )
    with client_program.open_connection() as connection:
        connection.settimeout(PATIENCE)
        said = b""
        try:
            connection.sendall(fields)
            for _ in range(40):
                connection.sendall(b"x" * 1_000_000)
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            said = connection.recv(1 << 16)
        except ConnectionResetError:
            return
    assert b" 413 " in said


def test_another_user_cannot_connect(service: object) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can act as another user")
    code = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    ended = subprocess.run(
        ["/usr/bin/python3", "-c", code, client_program.socket_path()],
        user=65534,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PermissionError" in ended.stderr


def test_a_folder_that_others_may_enter_gets_no_service(root: Path, workspace: Workspace) -> None:
    allow_service()
    folder = Path(client_program.runtime_folder())
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert AttachedClient(root).hook("PreToolUse", **CALL) is None, "it does without"
    assert [*folder.iterdir()] == []


def test_a_relay_serves_the_protocol_in_little_memory(relayed: Relayed) -> None:
    assert "alice" in relayed.hello["result"]["instructions"]
    assert relayed.call(2, "collab_list")["result"]["structuredContent"]["success"] is True
    status = Path(f"/proc/{relayed.process.pid}/status").read_text()
    assert int(status.partition("VmRSS:")[2].split()[0]) <= 12 * 1024


def test_a_relay_goes_on_with_the_next_service(relayed: Relayed, service: subprocess.Popen[bytes]) -> None:
    given = {"filepath": "a.md", "content": "a", "message": "m"}
    relayed.call(2, "collab_write", **given)
    service.kill()
    service.wait()
    found = relayed.call(3, "collab_read", filepath="a.md")
    if "error" in found:
        # The call came before the end of the service was noticed.
        found = relayed.call(4, "collab_read", filepath="a.md")
    assert found["result"]["structuredContent"]["content"] == "a"
    assert service_status()["process"] != service.pid


def test_a_relay_waits_for_a_slow_service(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes]
) -> None:
    with stopped(service.pid):
        relay = HastyRelay(root)
        assert relay.is_waiting()
    with closing(relay):
        assert relay.is_served()


def test_a_relay_that_waits_ends_with_its_client(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes]
) -> None:
    with stopped(service.pid):
        relay = HastyRelay(root)
        assert relay.is_waiting()
        relay.close()


SWITCHING: Final = b"HTTP/1.1 101 \r\n\r\n"
ANSWERED: Final = b'{"jsonrpc": "2.0", "id": %d, "result": {}}\n'
BUSY: Final = b"HTTP/1.1 503 \r\n\r\n4\r\nbusy\r\n0\r\n\r\n"


@contextmanager
def accepted(server: socket.socket) -> Iterator[tuple[socket.socket, BinaryIO]]:
    """Accept a relay, and read the head of its request."""
    connection, _ = server.accept()
    with connection, connection.makefile("rb") as received:
        connection.settimeout(PATIENCE)
        until(lambda: received.readline() == b"\r\n")
        yield connection, received


@pytest.fixture
def scripted() -> Iterator[socket.socket]:
    """A server at the service's socket, which the test answers for."""
    allow_service()
    client_program.make_runtime_folder()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(client_program.socket_path())
        server.listen()
        server.settimeout(PATIENCE)
        yield server


def initialized(server: socket.socket, root: Path) -> HastyRelay:
    """Return the relay of a client that is initialized. Its connection is closed."""
    relay = HastyRelay(root)
    with accepted(server) as (connection, received):
        connection.sendall(SWITCHING + ANSWERED % 1)
        assert relay.receive()["id"] == 1
        relay.send(INITIALIZED)
        until(lambda: b"initialized" in received.readline())
    return relay


def test_a_client_gets_one_answer_if_the_service_ends_before_it_is_initialized(
    root: Path, scripted: socket.socket
) -> None:
    with closing(HastyRelay(root)) as relay:
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            until(lambda: b'"initialize"' in received.readline())
            connection.sendall(ANSWERED % 1)
            assert relay.receive()["id"] == 1
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            until(lambda: b'"initialize"' in received.readline())
            connection.sendall(ANSWERED % 1)
            relay.send(INITIALIZED)
            relay.send_call(2, "collab_list")
            assert json.loads(received.readline()) == INITIALIZED
            assert json.loads(received.readline())["id"] == 2
            connection.sendall(ANSWERED % 2)
            assert relay.receive()["id"] == 2


def test_a_relay_of_a_service_that_does_not_answer_again_ends_with_its_client(
    root: Path, scripted: socket.socket
) -> None:
    relay = initialized(scripted, root)
    with accepted(scripted) as (connection, received):
        connection.sendall(SWITCHING)
        until(lambda: b"initialize" in received.readline())
        relay.close()


@pytest.mark.parametrize("is_socket", [False, True])
def test_a_relay_of_a_service_that_does_not_read_ends_with_its_client(
    root: Path, scripted: socket.socket, is_socket: bool
) -> None:
    """A client with a socket may only close its sending side."""
    ours, theirs = socket.socketpair()
    with ours, ours.makefile("wb") as stdin, theirs:
        relay = HastyRelay(root, stdin=theirs.fileno() if is_socket else subprocess.PIPE)
        relay.process.stdin = relay.process.stdin or stdin
        with accepted(scripted) as (connection, _):
            connection.sendall(SWITCHING)
            relay.send({"jsonrpc": "2.0", "method": "x" * 1_000_000})
            if is_socket:
                ours.shutdown(socket.SHUT_WR)
            relay.close()


def test_a_relay_in_a_session_waits_for_a_busy_service(root: Path, scripted: socket.socket) -> None:
    relay = initialized(scripted, root)
    for _ in range(client_program._TRIES + 1):
        with accepted(scripted) as (connection, _):
            connection.sendall(BUSY)
    with accepted(scripted) as (connection, received):
        connection.sendall(SWITCHING)
        until(lambda: b"initialize" in received.readline())
        relay.close()


def test_a_relay_of_a_client_without_a_handshake_waits_for_a_busy_service(
    root: Path, scripted: socket.socket
) -> None:
    relay = HastyRelay(root, hello=DISCOVER)
    with accepted(scripted) as (connection, received):
        connection.sendall(SWITCHING)
        until(lambda: b"server/discover" in received.readline())
        connection.sendall(ANSWERED % 1)
        assert relay.receive()["id"] == 1
    for _ in range(client_program._TRIES + 1):
        with accepted(scripted) as (connection, _):
            connection.sendall(BUSY)
    with accepted(scripted) as (connection, _):
        connection.sendall(SWITCHING)
        relay.close()


def test_a_poll_that_its_service_did_not_answer_is_repeated_once(root: Path, scripted: socket.socket) -> None:
    poll = {"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"taskId": "f" * 32}}
    with closing(HastyRelay(root)) as relay:
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            until(lambda: b'"initialize"' in received.readline())
            connection.sendall(ANSWERED % 1)
            assert relay.receive()["id"] == 1
            relay.send(INITIALIZED)
            relay.send(poll)
            relay.send_call(3, "collab_list")
            assert json.loads(received.readline()) == INITIALIZED
            assert json.loads(received.readline()) == poll
            assert json.loads(received.readline())["id"] == 3
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            until(lambda: b'"initialize"' in received.readline())
            connection.sendall(ANSWERED % 1)
            assert json.loads(received.readline()) == INITIALIZED
            assert json.loads(received.readline()) == poll
            failed = relay.receive()
            assert (failed["id"], "error" in failed) == (3, True)
        failed = relay.receive()
        assert (failed["id"], "error" in failed) == (2, True)


def test_a_handshake_that_was_refused_is_not_repeated(root: Path, scripted: socket.socket) -> None:
    """A client offers it if a slow service does not answer its first request in time."""
    refusal = {"code": -32022, "message": "no handshake"}
    with closing(HastyRelay(root, hello=DISCOVER)) as relay:
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            relay.send({**HELLO, "id": 2})
            until(lambda: b'"initialize"' in received.readline())
            connection.sendall(ANSWERED % 1)
            connection.sendall(json.dumps({"jsonrpc": "2.0", "id": 2, "error": refusal}).encode() + b"\n")
            assert [relay.receive()["id"] for _ in range(2)] == [1, 2]
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            relay.send({**DISCOVER, "id": 3})
            assert json.loads(received.readline())["id"] == 3
            connection.sendall(ANSWERED % 3)
            assert relay.receive()["id"] == 3


def test_a_request_that_was_cancelled_is_not_repeated(root: Path, scripted: socket.socket) -> None:
    with closing(HastyRelay(root, hello=DISCOVER)) as relay:
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            relay.send({**DISCOVER, "id": 2})
            relay.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
            until(lambda: b"cancelled" in received.readline())
        with accepted(scripted) as (connection, received):
            connection.sendall(SWITCHING)
            assert json.loads(received.readline())["id"] == 2
            connection.sendall(ANSWERED % 2)
            assert relay.receive()["id"] == 2


def test_a_relay_without_a_session_gives_up_on_a_busy_service(
    root: Path, scripted: socket.socket, capfd: pytest.CaptureFixture[str]
) -> None:
    relay = HastyRelay(root)
    for _ in range(client_program._TRIES):
        with accepted(scripted) as (connection, _):
            connection.sendall(BUSY)
    assert relay.has_given_up()
    assert capfd.readouterr().err == "busy\n"


def test_a_relay_whose_program_was_removed_goes_on_with_the_next_service(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    with closing(HastyRelay(root, [str(tmp_path / "removed")], seconds=PATIENCE)) as relay:
        assert relay.is_served()
        relay.send(INITIALIZED)
        service.kill()
        service.wait()
        assert relay.is_waiting()
        with running_service():
            assert relay.call(2, "collab_list")["result"]["structuredContent"]["success"] is True


def test_a_relay_whose_program_was_removed_ends_with_its_client(root: Path, tmp_path: Path) -> None:
    allow_service()
    relay = HastyRelay(root, [str(tmp_path / "removed")], seconds=PATIENCE * 10)
    assert relay.is_waiting()
    relay.close()


def test_a_relay_that_cannot_start_a_service_gives_up_with_the_reason(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    allow_service()
    removed = str(tmp_path / "removed")
    assert HastyRelay(root, [removed]).has_given_up()
    assert capfd.readouterr().err.endswith(f"No such file or directory: {removed!r}\n")


def test_a_relay_does_not_take_another_process_for_a_service(root: Path, tmp_path: Path) -> None:
    """A dead service leaves its process id in the lock, and the system reuses it."""
    allow_service()
    lock = Path(client_program.make_runtime_folder(), client_program.LOCK)
    lock.write_text(f"{os.getpid()} 0 {client_program.VERSION}\n")
    ends = [sys.executable, "-c", STARTER, str(tmp_path / "never")]
    assert HastyRelay(root, ends).has_given_up()


def test_a_relay_does_not_wait_for_a_service_that_has_ended(root: Path, workspace: Workspace) -> None:
    """In a container, process 1 may not collect the exit status of a service."""
    allow_service()
    with subprocess.Popen(["sleep", "1000"]) as ended:
        started = workspace.platform.process_start(ended.pid)
        ended.kill()
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        lock = Path(client_program.make_runtime_folder(), client_program.LOCK)
        lock.write_text(f"{ended.pid} {started:.0f} {client_program.VERSION}\n")
        assert HastyRelay(root, ["true"]).has_given_up()


WATCHFUL: Final = """
import sys
from watchroom.serving.service import service
from watchroom_cli.main import main
service._CHECK_SECONDS = 0.05
sys.exit(main())
"""
"""A service that often checks whether it can be reached."""


def test_a_service_whose_socket_was_removed_is_replaced(root: Path, workspace: Workspace) -> None:
    with running_service(["-c", WATCHFUL]) as service, closing(Relayed(root)) as relayed:
        os.unlink(client_program.socket_path())
        with closing(HastyRelay(root)) as relay:
            assert relay.is_served()
        assert service.wait(PATIENCE) == 0
        assert relayed.call(2, "collab_list")["id"] == 2


def test_a_service_whose_folder_was_removed_leaves_the_next_service_alone(
    root: Path, workspace: Workspace
) -> None:
    with running_service() as first:
        shutil.rmtree(client_program.runtime_folder())
        with running_service() as second:
            first.terminate()
            assert first.wait(PATIENCE) == 0
            assert service_status()["process"] == second.pid


def test_a_relay_waits_for_the_end_of_the_service_before(root: Path, workspace: Workspace) -> None:
    with running_service() as first, socket.socket(socket.AF_UNIX) as unfinished:
        # The service still waits for the rest of this request.
        unfinished.connect(client_program.socket_path())
        unfinished.send(b"POST ")
        client_program.ask("POST", "/stop", seconds=PATIENCE)
        until(lambda: not os.path.exists(client_program.socket_path()))
        with stopped(first.pid):
            relay = HastyRelay(root)
            assert relay.is_waiting()
        with closing(relay):
            assert relay.is_served()
    end_service(Path(client_program.runtime_folder()))


STARTER: Final = """
import os, sys
if not os.path.exists(sys.argv[1]):
    sys.exit(0)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_a_relay_starts_a_service_again_that_waited_too_long_for_the_one_before(
    root: Path, workspace: Workspace, tmp_path: Path
) -> None:
    allow_service()
    starts = tmp_path / "starts"
    lock = Path(client_program.make_runtime_folder(), client_program.LOCK)
    started = workspace.platform.process_start(os.getpid())
    lock.write_text(f"{os.getpid()} {started:.0f} {client_program.VERSION}\n")
    relay = HastyRelay(root, [sys.executable, "-c", STARTER, str(starts), *as_typed()])
    assert relay.is_waiting()
    starts.touch()
    with closing(relay):
        assert relay.is_served()
    end_service(Path(client_program.runtime_folder()))


INSTALLED: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from watchroom_cli.main import main
sys.exit(main(["service", "run"]))
"""


OLDER: Final = """
import sys
import watchroom
watchroom.__version__ = "0.0.1"
from watchroom_cli.main import main
sys.exit(main(["service", "run"]))
"""


def test_a_service_whose_program_was_removed_is_replaced(
    root: Path, workspace: Workspace, tmp_path: Path
) -> None:
    allow_service()
    installed = tmp_path / "watchroom"
    installed.symlink_to(Path(watchroom.__file__).parent)
    with subprocess.Popen([sys.executable, "-c", INSTALLED, str(tmp_path)]) as removed:
        until(lambda: os.path.exists(client_program.socket_path()))
        assert b" 200 " in asked(client_program.request("GET", "/status", []))
        installed.unlink()
        assert b"the program of this service was removed" in asked(
            client_program.request("GET", "/status", [])
        )
        with closing(HastyRelay(root)) as relay:
            assert relay.is_served()
        assert removed.wait(PATIENCE) == 0
    end_service(Path(client_program.runtime_folder()))


def test_a_relay_goes_on_with_a_newer_service(root: Path, workspace: Workspace) -> None:
    allow_service()
    with subprocess.Popen([sys.executable, "-c", OLDER]) as older:
        until(lambda: os.path.exists(client_program.socket_path()))
        with closing(HastyRelay(root)) as relay:
            assert relay.is_served()
        assert older.wait(PATIENCE) == 0
    end_service(Path(client_program.runtime_folder()))


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_call_that_its_service_did_not_answer_is_not_repeated(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes], ending: signal.Signals
) -> None:
    with closing(Relayed(root, "--ask", "collab_write")) as relayed:
        relayed.send_call(2, "collab_write", filepath="a.md", content="a", message="m")
        wait_for(workspace, lambda row: row.tool == ASK)
        service.send_signal(ending)
        service.wait(PATIENCE)
        refused = relayed.receive()
        assert (refused["id"], refused["error"]["code"]) == (2, -32000)
        assert "may have been made" in refused["error"]["message"]
        assert relayed.call(3, "collab_list")["result"]["structuredContent"]["count"] == 0


def test_a_server_for_an_agent_that_does_not_exist_says_so(
    root: Path, workspace: Workspace, service: Any
) -> None:
    ended = spawned("mcp", str(root), "--agent", "nobody")
    assert ended.returncode == 1
    assert "nobody" in ended.stderr


def test_external_edits_are_recorded_while_only_a_client_is_attached(
    root: Path, workspace: Workspace
) -> None:
    file = root / "collaborative/current/plan.md"
    with attendant(root):
        file.write_text("by hand\n")
        row = wait_for(workspace, lambda row: row.zone == "collab" and row.path == "plan.md")
    assert (row.actor, row.outcome) == ("outside", "conflict")


def test_a_process_leaves_the_work_to_the_service(root: Path, workspace: Workspace) -> None:
    with attendant(root):
        workspace.keep()
        assert not workspace.keep()
    until(workspace.keep)


def test_a_link_has_a_service_run_again(root: Path, workspace: Workspace) -> None:
    allow_service()
    program = (sys.executable, "-P", "-m", "watchroom_cli.main")
    with closing(link.ServiceLink(program, "/use", [("root", str(root))])) as held:
        held.start()
        until(lambda: service_status().get("workspaces"))
        first = service_pid()
        os.kill(first, signal.SIGKILL)
        until(lambda: service_status().get("process", first) != first)
        until(lambda: service_status().get("workspaces"))
    until(lambda: service_status()["workspaces"][0]["connections"] == 0)
    end_service(Path(client_program.runtime_folder()))


def test_a_link_waits_for_a_slow_service(
    root: Path, workspace: Workspace, service: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_START_SECONDS", 0.05)
    held = link.ServiceLink(as_typed(), "/use", [("root", str(root))])
    with closing(held), stopped(service.pid), ThreadPoolExecutor(1) as threads:
        connecting = threads.submit(held.connect)
        with pytest.raises(TimeoutError):
            connecting.result(0.3)
        os.kill(service.pid, signal.SIGCONT)
        connecting.result(PATIENCE).close()


def test_messages_reach_an_idle_client_through_the_service(root: Path, workspace: Workspace) -> None:
    with attendant(root):
        client = AttachedClient(root)
        client.hook("UserPromptSubmit", prompt="Go")
        workspace.session_zone.control(CallContext("human:ann", MESSAGE), "alice", None, "Now the docs.")
        said = client.hook("PostToolUse", **CALL, tool_response="ok")
    assert said is not None
    assert "Now the docs." in said["hookSpecificOutput"]["additionalContext"]


def test_a_port_is_served_as_long_as_its_command_runs(root: Path, workspace: Workspace) -> None:
    """The service has the workspace open, and a service that ends is replaced."""
    allow_service()
    token = workspace.access.create("human:ann", "alice")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"

    def call() -> int:
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        with suppress(httpx.TransportError):
            return httpx.post(url, json=request, headers=headers).status_code
        return 0

    command = as_typed("mcp", str(root), "--http", str(port))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert url in process.stderr.readline()
        assert call() == 200
        os.kill(service_pid(), signal.SIGKILL)
        until(lambda: call() == 200)
        process.terminate()
    until(lambda: call() == 0)


def test_a_port_of_no_workspace_is_refused_with_the_reason(tmp_path: Path) -> None:
    allow_service()
    ended = spawned("mcp", str(tmp_path), "--http", "9")
    assert ended.returncode != 0
    assert "http://" not in ended.stderr


def test_a_service_starts_while_the_one_before_it_ends(service_allowed: None) -> None:
    with running_service() as first, socket.socket(socket.AF_UNIX) as unfinished:
        # The service still waits for the rest of this request.
        unfinished.connect(client_program.socket_path())
        unfinished.send(b"POST ")
        client_program.ask("POST", "/stop", seconds=PATIENCE)
        with running_service():
            assert first.wait(PATIENCE) == 0
            assert service_status()
