"""Shared fixtures: a workspace for each test, and a short way to call tools."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from itertools import chain, count, groupby
from pathlib import Path
from platform import node
from typing import TYPE_CHECKING, Final

import pytest
from effort import SEED
from forkserver import forked_commands
from hypothesis import HealthCheck, settings
from memory_folder import choose_base, remove_tree
from platforms.choice import PLATFORM_NAMES, choose_platform
from service_process import allow_service, own_runtime_folder, running_service
from tasking import machine_sandbox
from tiers import choose_tier, is_real, keep_tier
from watchroom import Json, Toolbox, Workspace
from watchroom.kernel.checkout.location import keep_journal_address
from watchroom.platform import Platform

if TYPE_CHECKING:
    from journal.server import ReusedDatabase, Server

MEMORY_BASE: Final = pytest.StashKey[Path]()
"""Where the files of this run are, if they are in memory."""

# Registered here, because other modules import it too, sometimes before the tests of the commands.
pytest.register_assert_rewrite("cli.running")

Call = Callable[..., dict[str, Json]]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the tier, the examples of hypothesis, and the folder of the tests' files.

    The fast tier keeps files in memory if there is space, because syncs to a disk took half of its kernel
    time.
    """
    choose_tier(config)
    # A deadline for an example would mostly measure the load of the machine.
    settings.register_profile(
        "watchroom",
        derandomize=SEED not in os.environ,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("watchroom")
    if hasattr(config, "workerinput") or config.option.basetemp is not None or is_real(config):
        return
    if base := choose_base():
        config.option.basetemp = str(base)
        config.stash[MEMORY_BASE] = base


def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the seed before the first test, so that a killed run has printed it too."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and SEED in os.environ:
        reporter.write_line(f"{SEED}={os.environ[SEED]}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if SEED in os.environ:
        terminalreporter.write_line(f"Run again with the same seed: {SEED}={os.environ[SEED]}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remove the files in memory, unless tests failed, whose files are kept until the next run."""
    base = session.config.stash.get(MEMORY_BASE, None)
    if base is not None and exitstatus == pytest.ExitCode.OK:
        remove_tree(base)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Start each worker with other files, so that workers share the compiled bytecode."""
    config = session.config
    worker = getattr(config, "workerinput", None)
    if not is_real(config) and (worker is not None or not config.getoption("numprocesses", None)):
        # Imported modules stay, so scanning them again and again during collection is wasted.
        gc.disable()
    folders = [Path(each) for each in config.args]
    if worker is None or not all(folder.is_dir() for folder in folders):
        return
    files = [str(file) for folder in folders for file in sorted(folder.rglob("test_*.py"))]
    begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    config.args = files[begin:] + files[:begin]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give all workers the tests in the same order. With ``--journal postgres``, select those that can run on
    a server."""
    keep_tier(config, items)
    if config.getoption("--journal") == "postgres":
        kept = [item for item in items if _can_run_on_server(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
    if hasattr(config, "workerinput"):
        # The longest files of the real tier are its own. At the end they would run alone.
        first = "real" if is_real(config) else None
        items.sort(key=lambda item: (item.path.parent.name != first, item.path.parts))
        items[:] = _spread_slow(items)


def _can_run_on_server(item: pytest.Item) -> bool:
    """Return whether a test has a journal, and is not about the journal in a folder (marker ``sqlite``)."""
    has_journal = "root" in item.fixturenames  # type: ignore[attr-defined]
    return has_journal and item.get_closest_marker("sqlite") is None


def _spread_slow(items: list[pytest.Item]) -> list[pytest.Item]:
    """Put after each file of waiting tests as many others as it waits long, because waiting tests side by
    side would leave the machine idle. A tenth of the others is kept for the end, so that the last waiting
    file does not run alone."""
    files = [list(each) for _, each in groupby(items, key=lambda item: item.path)]
    waits = [0 if (slow := file[0].get_closest_marker("slow")) is None else slow.args[0] for file in files]
    others = [file for file, seconds in zip(files, waits, strict=True) if not seconds]
    spread: list[list[pytest.Item]] = []
    between = len(others) * 9 // 10
    waited = placed = 0
    for file, seconds in zip(files, waits, strict=True):
        if seconds:
            waited += seconds
            until = between * waited // sum(waits)
            spread += [file, *others[placed:until]]
            placed = until
    return [*chain.from_iterable(spread), *chain.from_iterable(others[placed:])]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exclude what is imported by now from garbage collection, and collect the objects of tests less often.

    The real tier keeps the interpreter's defaults.
    """
    if is_real(session.config):
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def settings_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give dashboards of tests, also in their own processes, other settings than the developer's."""
    folder = tmp_path_factory.mktemp("config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        # Nobody types in the tests' terminals, even if they run in tmux.
        patch.delenv("TMUX", raising=False)
        yield folder


@pytest.fixture(autouse=True, scope="session")
def _forked_commands(pytestconfig: pytest.Config) -> Iterator[None]:
    """Fork the commands of Watchroom in the fast tier, which takes a tenth of the time to start an
    interpreter."""
    with nullcontext() if is_real(pytestconfig) or sys.platform != "linux" else forked_commands():
        yield


@pytest.fixture(autouse=True, scope="module")
def module_settings(settings_folder: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Give the shared fixtures of a module other settings than those of other modules."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(settings_folder / str(hash(request.node.nodeid))))
        yield


@pytest.fixture(autouse=True)
def _own_settings(
    settings_folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Give each test its own settings, so that a dashboard does not open where another test's was left."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(settings_folder / str(hash(request.node.nodeid))))


@pytest.fixture(autouse=True)
def _own_service(monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> Iterator[None]:
    """Give each test its own service, which ends with the test. In the fast tier none is started unless the
    test allows it, because each takes half a second."""
    with own_runtime_folder(monkeypatch, is_blocked=not is_real(pytestconfig)):
        yield


@pytest.fixture
def service_allowed(_own_service: None) -> None:
    """Let clients start a service in the fast tier too."""
    allow_service()


@pytest.fixture
def service(_own_service: None) -> Iterator[None]:
    """Run a service, so that no client starts one. The fast tier forks it, which takes a tenth of the time that
    a client needs to start one."""
    with running_service():
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--journal",
        choices=["sqlite", "postgres"],
        help="where the workspaces of the fixture `root` have their rows (default: in their folder, and those of "
        "the specifications on a server as well)",
    )
    parser.addoption(
        "--platform",
        choices=PLATFORM_NAMES,
        default="detected",
        help="the fixture `platform`: that of this machine, or POSIX without what Linux adds",
    )


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """A PostgreSQL server of this test process. It syncs to a disk only in the real tier."""
    from journal.server import running_server

    with running_server({"fsync": "on"} if is_real(pytestconfig) else None) as server:
        yield server


@pytest.fixture(scope="session")
def new_database(postgres_server: Server) -> Callable[[], str]:
    """Return a function that creates a database with an empty journal, and returns its address."""
    from watchroom.kernel.journal.postgres import PostgresJournal

    PostgresJournal(postgres_server.create("template_journal")).close()
    numbers = count()
    return lambda: postgres_server.create(f"journal{next(numbers)}", "template_journal")


@pytest.fixture(scope="session")
def reused_database(postgres_server: Server, new_database: Callable[[], str]) -> Iterator[ReusedDatabase]:
    """A database that is reused by one workspace after another."""
    from journal.server import ReusedDatabase

    with closing(ReusedDatabase(postgres_server, new_database)) as database:
        yield database


@pytest.fixture
def journal_name(request: pytest.FixtureRequest) -> str:
    """Return the kind of journal of the test: its parameter, the option, or ``sqlite``."""
    name: str = getattr(request, "param", request.config.getoption("--journal") or "sqlite")
    return name


@pytest.fixture
def on_machine(journal_name: str) -> str:
    """Return the text after an external edit on the screen: on a server it names the machine."""
    return f" on {node()}" if journal_name == "postgres" else ""


@pytest.fixture
def root(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    journal_name: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Path:
    folder = tmp_path / "team"
    if journal_name == "postgres":
        keep_journal_address(folder, request.getfixturevalue("reused_database").empty())
        # State is found by the address, which is reused, so an earlier workspace's would count.
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    return folder


@pytest.fixture
def platform(request: pytest.FixtureRequest) -> Platform:
    return choose_platform(request.config.getoption("--platform"))


@pytest.fixture
def workspace(root: Path, platform: Platform) -> Iterator[Workspace]:
    agents = ["alice", "bob", "charlie"]
    with Workspace.open(root, agents=agents, sandbox=machine_sandbox(), platform=platform) as opened:
        yield opened


@pytest.fixture
def alice(workspace: Workspace) -> Toolbox:
    return workspace.tools("alice")


@pytest.fixture
def bob(workspace: Workspace) -> Toolbox:
    return workspace.tools("bob")


@pytest.fixture
def charlie(workspace: Workspace) -> Toolbox:
    return workspace.tools("charlie")
