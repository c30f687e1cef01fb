"""An attached client that ended while no service ran is shown as not seen alive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from watchroom import Workspace
from watchroom.agents.clients import client_traces
from watchroom.agents.clients.events import ClientInfo, PromptSubmitted, SessionEnded, TurnEnded
from watchroom.agents.clients.session import ClientSession
from watchroom.features.overview.agents import AgentView
from watchroom.features.overview.goals import find_ending
from watchroom.features.overview.presence import absent_work, with_presences
from watchroom.features.overview.snapshots import read_model
from watchroom.features.sessions.client_process import BOOT, PID, STARTED, read_process
from watchroom.model import Json


@pytest.fixture
def client() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process


def begin(workspace: Workspace, pid: int, started: float | None = None) -> ClientSession:
    """A session whose client is waiting for a prompt."""
    began = workspace.platform.process_start(pid) if started is None else started
    session = ClientSession(
        workspace, "alice", "s-1", ClientInfo("claude", pid=pid, started=began), is_owner=False
    )
    session.record(PromptSubmitted("Go"))
    session.record(TurnEnded())
    return session


def shown(workspace: Workspace) -> AgentView:
    """Alice as every list shows her after the last hook has ended, so that its lease is released."""
    journal = workspace.journal
    view = with_presences(read_model(journal, journal.last_seq()), list).agent("alice")
    assert view is not None
    return view


def status(workspace: Workspace) -> str:
    return shown(workspace).status(workspace.journal.now())


def end(client: subprocess.Popen[bytes]) -> None:
    client.kill()
    client.wait()


def test_a_waiting_client_is_idle_until_its_process_ends(
    workspace: Workspace, client: subprocess.Popen[bytes]
) -> None:
    begin(workspace, client.pid)
    view = shown(workspace)
    assert (status(workspace), view.is_present, view.is_stopped) == ("idle", True, False)
    end(client)
    view = shown(workspace)
    assert (status(workspace), view.is_lost, find_ending(view)) == ("lost", True, "lost")
    model = read_model(workspace.journal, workspace.journal.last_seq())
    assert ("agent", "alice", True) in absent_work(with_presences(model, list))


def test_a_client_at_work_is_running_until_its_process_ends(
    workspace: Workspace, client: subprocess.Popen[bytes]
) -> None:
    begin(workspace, client.pid).record(PromptSubmitted("On"))
    assert status(workspace) == "running"
    end(client)
    assert status(workspace) == "lost"


def test_another_process_with_the_same_id_is_not_the_client(
    workspace: Workspace, client: subprocess.Popen[bytes]
) -> None:
    begin(workspace, client.pid, workspace.platform.process_start(client.pid) - 100)
    assert status(workspace) == "lost"


def test_the_client_that_resumed_the_session_counts(
    workspace: Workspace, client: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as first:
        begin(workspace, first.pid)
    begin(workspace, client.pid)
    assert status(workspace) == "idle"
    end(client)
    assert status(workspace) == "lost"


def test_an_ended_session_stays_ended(workspace: Workspace, client: subprocess.Popen[bytes]) -> None:
    begin(workspace, client.pid).record(SessionEnded())
    end(client)
    assert (status(workspace), shown(workspace).is_lost) == ("done", False)


def test_nothing_is_claimed_about_a_client_of_another_machine(
    workspace: Workspace, client: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(client_traces, "node", lambda: "another-machine")
        begin(workspace, client.pid)
    end(client)
    view = shown(workspace)
    assert (status(workspace), view.is_lost, view.is_stopped) == ("idle", False, False)


def test_nothing_is_claimed_about_an_unknown_process(workspace: Workspace) -> None:
    begin(workspace, 0)
    view = shown(workspace)
    assert (status(workspace), view.is_lost, view.is_stopped) == ("idle", False, False)


def test_a_client_outlives_its_service(workspace: Workspace, client: subprocess.Popen[bytes]) -> None:
    """The lease of a killed service expires, but its clients run on."""
    begin(workspace, client.pid)
    journal = workspace.journal
    dead = [each._replace(is_alive=False) for each in journal.presence.all()]
    model = with_presences(read_model(journal, journal.last_seq()), lambda: dead)
    view = model.agent("alice")
    assert view is not None
    assert (view.status(journal.now()), view.is_lost) == ("idle", False)
    assert [need.kind for need in model.needs if need.kind == "lost"] == []
    end(client)
    model = with_presences(read_model(journal, journal.last_seq()), lambda: dead)
    assert [need.kind for need in model.needs] == ["lost"]


@pytest.mark.parametrize("fields", [{PID: 1}, {PID: 10**400, STARTED: 1}, {PID: True, STARTED: 1.0}, {}])
def test_a_row_without_a_process_has_none(fields: dict[str, Json]) -> None:
    assert read_process(fields) is None


@pytest.mark.parametrize("started", [10**400, -1, "soon", True, None])
def test_a_process_with_an_impossible_start_is_unknown(workspace: Workspace, started: Json) -> None:
    """Agents can plant rows with any fields."""
    found = read_process({PID: 1, STARTED: started, BOOT: workspace.platform.boot_id()})
    assert found is not None
    assert found.has_ended(workspace.platform) is None
