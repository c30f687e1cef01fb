"""Spans are sent to an OpenTelemetry receiver, or printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread

import pytest
from cli.running import Captured, as_typed, misuse, printed, printed_rows, refusal
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from watchroom import Workspace
from watchroom.agents.clients.events import (
    CallFinished,
    CallStarted,
    ClientInfo,
    MessageCompleted,
    PromptSubmitted,
    SessionEnded,
)
from watchroom.agents.clients.session import ClientSession
from watchroom.features.budgets.rows import UsageTotal

PATIENCE = 30
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class SpanReceiver:
    """A receiver on loopback. ``statuses`` are its next answers, then it accepts everything."""

    def __init__(self) -> None:
        self.statuses: deque[int] = deque()
        self.requests: Queue[tuple[str, dict[str, str], ExportTraceServiceRequest]] = Queue()

    def spans(self) -> list[Span]:
        """Return the spans of the next request."""
        _, _, request = self.requests.get(timeout=PATIENCE)
        return [span for one in request.resource_spans for two in one.scope_spans for span in two.spans]


@pytest.fixture
def receiver() -> Iterator[tuple[SpanReceiver, str]]:
    taken = SpanReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = taken.statuses.popleft() if taken.statuses else 200
            if status == 200:
                request = ExportTraceServiceRequest.FromString(body)
                taken.requests.put((self.path, {k.lower(): v for k, v in self.headers.items()}, request))
            self.send_response(status)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield taken, f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def worked(workspace: Workspace) -> str:
    """A workspace with a session of an answer and a call, which continued after its end, and a traced
    call."""
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude", model="big"))
    session.record(PromptSubmitted("Say the secret word"))
    session.record(MessageCompleted("I write.", model="big", used=UsageTotal(100, 10, 1000)))
    session.record(CallStarted("c1", "Write", "{}"))
    session.record(CallFinished("c1", "no such folder", is_error=True))
    session.record(SessionEnded())
    session.record(PromptSubmitted("Again"))
    session.record(SessionEnded())
    alice = workspace.tools("alice")
    arguments = {"filename": "a.md", "content": "mine"}
    alice.dispatch_tool_call("save_to_my_workspace", arguments, trace=alice.begin_trace(CALLER))
    root = workspace.root
    workspace.close()
    return root


def test_ended_spans_are_sent(
    capsys: Captured,
    worked: str,
    receiver: tuple[SpanReceiver, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken, url = receiver
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=let-me-in")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    out = printed(capsys, "traces", worked, "--endpoint", url)
    path, headers, request = taken.requests.get(timeout=PATIENCE)
    assert (path, headers["x-key"]) == ("/v1/traces", "let-me-in")
    (resource,) = request.resource_spans
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert (about["service.name"], about["deployment.environment.name"]) == ("watchroom", "test")
    (scope,) = resource.scope_spans
    chat, call, first, second, traced = scope.spans
    assert [span.name for span in scope.spans] == [
        "chat big",
        "execute_tool Write",
        "invoke_agent alice",
        "invoke_agent alice",
        "tools/call save_to_my_workspace",
    ]
    assert chat.parent_span_id == call.parent_span_id == first.span_id
    assert chat.trace_id == call.trace_id == first.trace_id == second.trace_id
    assert [link.span_id for link in second.links] == [first.span_id]
    assert (chat.kind, call.kind, traced.kind) == (
        Span.SPAN_KIND_CLIENT,
        Span.SPAN_KIND_INTERNAL,
        Span.SPAN_KIND_SERVER,
    )
    assert (call.status.code, chat.status.code) == (Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET)
    assert f"00-{traced.trace_id.hex()}-{traced.parent_span_id.hex()}-01" == CALLER
    numbers = {each.key: each.value.int_value for each in chat.attributes if each.value.int_value}
    assert numbers["gen_ai.usage.input_tokens"] == 1100
    assert numbers["gen_ai.usage.output_tokens"] == 10
    assert first.start_time_unix_nano < call.start_time_unix_nano < first.end_time_unix_nano
    assert b"secret" not in request.SerializeToString()
    assert out.startswith("Spans sent: 5,")
    last = out.rpartition(" ")[2].strip()
    assert printed(capsys, "traces", worked, "--endpoint", url, "--since", last).startswith("Spans sent: 0,")
    assert taken.requests.empty()


def test_an_unavailable_receiver_is_retried(
    capsys: Captured, worked: str, receiver: tuple[SpanReceiver, str]
) -> None:
    taken, url = receiver
    taken.statuses.append(503)
    assert printed(capsys, "traces", worked, "--endpoint", f"{url}/own/path").startswith("Spans sent: 5,")
    assert taken.requests.get(timeout=PATIENCE)[0] == "/own/path"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "/base/v1/traces"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/base"),
    ],
)
def test_the_variables_of_opentelemetry_set_the_endpoint(
    capsys: Captured,
    worked: str,
    receiver: tuple[SpanReceiver, str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    path: str,
) -> None:
    taken, url = receiver
    monkeypatch.setenv(name, f"{url}/base")
    printed(capsys, "traces", worked)
    assert taken.requests.get(timeout=PATIENCE)[0] == path


@pytest.mark.parametrize("status", [300, 307, 401])
def test_a_refusing_receiver_is_reported_and_redirects_are_not_followed(
    capsys: Captured, worked: str, receiver: tuple[SpanReceiver, str], status: int
) -> None:
    taken, url = receiver
    taken.statuses.append(status)
    said = refusal(capsys, "traces", worked, "--endpoint", url)
    assert f"{url}/v1/traces did not accept the spans: {status} " in said
    assert "--since" in said
    assert taken.requests.empty()


def test_an_unreachable_receiver_is_reported(
    capsys: Captured, worked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_port
    said = refusal(capsys, "traces", worked, "--endpoint", f"http://127.0.0.1:{port}")
    assert "refused" in said


def test_they_are_printed_without_the_extra(
    capsys: Captured, worked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry.exporter")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    spans = printed_rows(capsys, "traces", worked, "--json")
    assert [span["name"] for span in spans][:2] == ["chat big", "execute_tool Write"]
    assert "secret" not in str(spans)
    assert "secret" in str(printed_rows(capsys, "traces", worked, "--json", "--content"))
    row = str(spans[1]["row"])
    assert printed_rows(capsys, "traces", worked, "--json", "--since", row) == spans[2:]
    said = refusal(capsys, "traces", worked, "--endpoint", "http://127.0.0.1:1")
    assert 'pip install "watchroom[otel]"' in said


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("--endpoint", "file:///etc/passwd"),
        ("--endpoint", "http://name:password@127.0.0.1"),
        ("--endpoint", "http://127.0.0.1:1", "--json"),
        ("--json", "--since", "1000000"),
    ],
)
def test_wrong_usage_is_refused(capsys: Captured, worked: str, given: tuple[str, ...]) -> None:
    assert misuse(capsys, "traces", worked, *given)


def test_following_sends_new_rows_until_an_interrupt(
    workspace: Workspace, receiver: tuple[SpanReceiver, str]
) -> None:
    taken, url = receiver
    session = ClientSession(workspace, "alice", "s-1", ClientInfo("claude"))
    session.record(SessionEnded())
    command = as_typed("traces", workspace.root, "--follow", "--endpoint", url)
    env = {**os.environ, "WATCHROOM_LANGUAGE": "en"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as follower:
        assert [span.name for span in taken.spans()] == ["invoke_agent alice"]
        session.record(PromptSubmitted("Again"))
        session.record(SessionEnded())
        assert len(taken.spans()) == 1
        follower.send_signal(signal.SIGINT)
        out, _ = follower.communicate(timeout=PATIENCE)
    assert follower.returncode == 0
    # The interrupt can come before or after the answer to the second request. Without one it is sent again.
    assert re.search("Spans sent: [12], up to row", out)
