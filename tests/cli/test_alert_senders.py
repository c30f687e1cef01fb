"""Which process sends alerts: the service while it runs, else one of the front ends. Each is sent once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from calls import ok
from cli.running import as_typed
from pty_driver import Terminal
from receiver import PATIENCE, Receiver, receiving
from service_process import allow_service, running_service
from tui.team import collide
from watchroom import Toolbox, Workspace
from watchroom.features.alerts.payloads import AlertWording
from watchroom.features.alerts.rows import AlertItem, AlertMessage, parse_message
from watchroom.features.overview.model import Need
from watchroom.features.requests.rows import Request
from watchroom.kernel.call_context import CallContext
from watchroom.kernel.journal.postgres.members import DatabaseMembers
from watchroom.model import SEND_ALERT
from watchroom.serving.service.link import ServiceLink
from watchroom_cli.plain.sentences import alert_wording

pytestmark = pytest.mark.slow(30)

VARIABLE = "WATCHROOM_HOOK"
"""The service gets only variables of this form. The path in it tells who has sent."""
SETTINGS = f"""
[alerts]
digest_seconds = 0
[alerts.targets.hook]
type = "webhook"
url = "${VARIABLE}"
"""


@pytest.fixture
def receiver(workspace: Workspace) -> Iterator[Receiver]:
    path = Path(workspace.root) / ".watchroom/config.toml"
    path.write_text(path.read_text() + SETTINGS)
    workspace.scan()
    assert workspace.registry.find_invalid() is None
    with receiving() as opened:
        yield opened


@contextmanager
def watching(workspace: Workspace, url: str, *command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``watchroom watch``, or ``command``, in the workspace's folder within the context."""
    with subprocess.Popen(
        as_typed(*(command or ("watch",)), workspace.root),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**os.environ, VARIABLE: url},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def dashboard(workspace: Workspace, url: str) -> Terminal:
    command = [sys.executable, "-m", "watchroom_cli.main", "open", workspace.root]
    return Terminal(command, 120, 40, env={VARIABLE: url})


def ask(workspace: Workspace, number: int) -> None:
    question = Request("prompt", f"Question {number}?")
    workspace.requests.ask(CallContext("alice"), f"alice/mcp/{number}", question)


def sent(receiver: Receiver) -> tuple[str, str, int]:
    """Return who sent the next alert, its event and the number of its needs."""
    posted = receiver.next()
    return posted.path, posted.body["event"], len(posted.body["needs"])


def messages(workspace: Workspace) -> list[AlertMessage]:
    """Return the messages that were recorded as sent."""
    rows = [row for row in workspace.journal.rows(limit=1000) if row.tool == SEND_ALERT]
    return [message for row in rows if (message := parse_message(row)) is not None]


def wait_recorded(workspace: Workspace, count: int) -> None:
    """Wait until ``count`` messages are recorded. A sender that dies before that sends again."""
    end = time.monotonic() + PATIENCE
    while len(messages(workspace)) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_dashboard_and_a_watch_without_a_service_send_each_alert_once(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, receiver: Receiver
) -> None:
    url = f"{receiver.url}/front"
    with (
        watching(workspace, url),
        watching(workspace, url, "open", "--plain"),
        dashboard(workspace, url) as user,
    ):
        user.wait_for_text("Needs", timeout=PATIENCE)
        number = collide(alice, bob)
        assert sent(receiver) == ("/front", "new", 1)
        ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=number)
        assert sent(receiver) == ("/front", "ended", 1)
        wait_recorded(workspace, 2)
    assert receiver.rest() == []
    assert [each.event for each in messages(workspace)] == ["new", "ended"]


def test_with_a_dashboard_and_its_service_only_the_service_sends(
    workspace: Workspace,
    alice: Toolbox,
    bob: Toolbox,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, f"{receiver.url}/service")
    allow_service()
    with running_service(), dashboard(workspace, f"{receiver.url}/dashboard") as user:
        user.wait_for_text("Needs", timeout=PATIENCE)
        number = collide(alice, bob)
        assert sent(receiver) == ("/service", "new", 1)
        ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=number)
        assert sent(receiver) == ("/service", "ended", 1)
        wait_recorded(workspace, 2)
    assert receiver.rest() == []
    assert [each.event for each in messages(workspace)] == ["new", "ended"]


def test_a_front_end_takes_over_from_a_killed_service_and_yields_to_the_next(
    workspace: Workspace, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, f"{receiver.url}/service")
    with watching(workspace, f"{receiver.url}/watch"):
        with (
            running_service() as service,
            closing(ServiceLink((), "/use", [("root", workspace.root)])) as link,
        ):
            link.start()
            ask(workspace, 1)
            assert sent(receiver) == ("/service", "new", 1)
            wait_recorded(workspace, 1)
            service.kill()
            service.wait(PATIENCE)
            ask(workspace, 2)
            assert sent(receiver) == ("/watch", "new", 1)
        with running_service(), closing(ServiceLink((), "/use", [("root", workspace.root)])) as link:
            link.start()
            number, path, end = 2, "", time.monotonic() + PATIENCE
            while path != "/service":
                assert time.monotonic() < end
                # The watch may send some until it has noticed the service.
                time.sleep(0.5)
                number += 1
                ask(workspace, number)
                path, *what = sent(receiver)
                assert what == ["new", 1]
    assert receiver.rest() == []
    wait_recorded(workspace, number)
    assert len(messages(workspace)) == number
    assert sorted(item.key for each in messages(workspace) for item in each.items) == [
        f"alice/mcp/{each}" for each in range(1, number + 1)
    ]


def test_a_missing_variable_is_logged_once_and_a_corrected_configuration_is_used(
    workspace: Workspace, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    def problems() -> list[str]:
        return [each for each in caplog.messages if "no alert is sent" in each]

    ask(workspace, 1)
    workspace.send_alerts(alert_wording("en"), {})
    end = time.monotonic() + PATIENCE
    while not problems():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert problems() == [f"no alert is sent: alerts.targets.hook.url: ${VARIABLE} is not set."]
    time.sleep(5)
    assert len(problems()) == 1
    path = Path(workspace.root) / ".watchroom/config.toml"
    path.write_text(path.read_text().replace(f"${VARIABLE}", f"{receiver.url}/corrected"))
    workspace.scan()
    assert sent(receiver) == ("/corrected", "new", 1)
    workspace.close()
    assert receiver.rest() == []


def test_an_unexpected_error_is_logged_and_sending_starts_again(
    workspace: Workspace,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("watchroom.features.alerts.keeper._RETRY_SECONDS", 0)
    texts, describe = alert_wording("en")
    failures = [ZeroDivisionError("no text for this need")]

    def fail_once(need: Need) -> AlertItem:
        if failures:
            raise failures.pop()
        return describe(need)

    ask(workspace, 1)
    workspace.send_alerts(AlertWording(texts, fail_once), {VARIABLE: f"{receiver.url}/again"})
    assert sent(receiver) == ("/again", "new", 1)
    assert "alerts ended: no text for this need" in caplog.messages


@pytest.mark.postgres
def test_a_login_that_cannot_record_alerts_sends_none(
    new_database: Callable[[], str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = new_database()
    with (
        closing(DatabaseMembers(url)) as members,
        receiving() as receiver,
        Workspace.open(url, agents=["alice"], checkout=tmp_path / "own") as workspace,
    ):
        path = Path(workspace.root) / ".watchroom/config.toml"
        path.write_text(path.read_text() + SETTINGS)
        workspace.scan()
        ask(workspace, 1)
        before = workspace.journal.last_seq()
        login = members.add("alice", "agent")
        environ = {VARIABLE: f"{receiver.url}/agent"}
        with Workspace.open(login, create=False, checkout=tmp_path / "alice") as agent:
            agent.send_alerts(alert_wording("en"), environ)
            end = time.monotonic() + PATIENCE
            while not any("no alert is sent" in each for each in caplog.messages):
                assert time.monotonic() < end
                time.sleep(0.05)
        assert receiver.rest() == []
        workspace.send_alerts(alert_wording("en"), {VARIABLE: f"{receiver.url}/owner"})
        assert sent(receiver) == ("/owner", "new", 1)
        wait_recorded(workspace, 1)
        assert [row.tool for row in workspace.journal.rows(before)] == [SEND_ALERT]
