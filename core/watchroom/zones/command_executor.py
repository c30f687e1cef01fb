"""Runs the commands of agents in sandboxes, and knows which of them run in this process. Writes no rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, Event, Lock
from typing import NamedTuple

from watchroom.model import Json
from watchroom.sandbox.backend import NetworkAccess, ProxySocket, SandboxBackend
from watchroom.sandbox.limits import ResourceLimits
from watchroom.sandbox.output import OnOutput
from watchroom.sandbox.probe import SandboxProbe
from watchroom.sandbox.repositories import GIT_FOLDER
from watchroom.sandbox.runner import CommandResult, run_command
from watchroom.texts import Catalogue


class StopSignal(NamedTuple):
    """Stops a command by its ``event``; ``wakeup`` ends the wait for a person's answer as well."""

    event: Event
    wakeup: Event

    def set(self) -> None:
        """Stop the command."""
        self.event.set()
        self.wakeup.set()


class ExecutionRequest(NamedTuple):
    """A ``command`` that is to run in ``folder`` with a sandbox of ``backend``. ``path`` is that of its rows,
    ``hosts`` are patterns of those that it may reach."""

    path: str
    command: str
    folder: str
    backend: SandboxBackend
    limits: ResourceLimits
    hosts: Sequence[str]

    @property
    def task(self) -> str:
        """The task in whose folder it runs."""
        return self.path.partition("/")[0]

    @property
    def protects_git(self) -> bool:
        """Whether the command cannot make a repository at the top of its folder."""
        # Nothing can be mounted over a link.
        return self.backend.protects_git and not os.path.islink(os.path.join(self.folder, GIT_FOLDER))


class Execution(NamedTuple):
    """How a command ended. ``concurrent`` are the paths of the commands that ran in the same folder
    meanwhile; ``network`` is for the detail of its last row: the hosts that were reached and refused."""

    result: CommandResult
    concurrent: set[str]
    network: dict[str, Json]


class CommandExecutor:
    """Runs commands and stops them; ``sandbox`` are the sandboxes to choose from (default: those of this
    machine, tested when first needed). May be used from any thread."""

    def __init__(self, sandbox: SandboxProbe | None = None) -> None:
        self._sandbox = sandbox
        self._lock = Lock()
        self._stopped = Condition(self._lock)
        self._signals: dict[str, list[StopSignal]] = {}
        """The running commands of each agent."""
        self._concurrent: dict[str, set[str]] = {}
        """Of each running command, by its path, those that ran in the same folder meanwhile."""

    @property
    def sandbox(self) -> SandboxProbe:
        """The sandboxes of this machine, tested when first asked for."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = SandboxProbe.run()
            return self._sandbox

    @contextmanager
    def stoppable(self, agent: str) -> Iterator[StopSignal]:
        """A context in which `stop` finds a command of ``agent``; yields the signal that stops it."""
        signal = StopSignal(Event(), Event())
        with self._lock:
            self._signals.setdefault(agent, []).append(signal)
        try:
            yield signal
        finally:
            with self._stopped:
                self._signals[agent].remove(signal)
                self._stopped.notify_all()

    def stop(self, agent: str) -> int:
        """Stop the commands of ``agent`` that run here, with all that they started. They end on their own
        threads, a moment later. Returns their number."""
        with self._lock:
            signals = tuple(self._signals.get(agent, ()))
        for signal in signals:
            signal.set()
        return len(signals)

    def close(self) -> None:
        """Stop all commands, and wait until none is in the context of `stoppable`."""
        with self._stopped:
            for signals in self._signals.values():
                for signal in signals:
                    signal.set()
            self._stopped.wait_for(lambda: not any(self._signals.values()))

    def execute(
        self, request: ExecutionRequest, texts: Catalogue, on_output: OnOutput, stop: Event
    ) -> Execution:
        """Run the command of ``request`` to its end, or until ``stop`` is set.

        ``on_output`` is given what it prints; ``texts`` has what it is told of hosts that it cannot reach.
        Raises as `run_command` does.
        """
        network: dict[str, Json] = {}
        with self._counted(request) as concurrent, _network(request, texts, network) as access:
            result = run_command(
                request.command,
                request.folder,
                backend=request.backend,
                limits=request.limits,
                network=access,
                on_output=on_output,
                stop=stop,
            )
        if "no_network" in network:
            result = result._replace(stderr=f"{network['no_network']}\n{result.stderr}")
        return Execution(result, concurrent, network)

    @contextmanager
    def _counted(self, request: ExecutionRequest) -> Iterator[set[str]]:
        path = request.path
        with self._lock:
            others = {each for each in self._concurrent if each.partition("/")[0] == request.task}
            for each in others:
                self._concurrent[each].add(path)
            self._concurrent[path] = others
        try:
            yield others
        finally:
            with self._lock:
                del self._concurrent[path]


@contextmanager
def _network(request: ExecutionRequest, texts: Catalogue, detail: dict[str, Json]) -> Iterator[NetworkAccess]:
    """Access to the hosts of ``request``. Which were reached, which refused, or why there is no access is put
    into ``detail``."""
    if not request.hosts:
        yield False
        return
    if not request.backend.supports_proxy:
        detail["no_network"] = texts("proxy.unavailable")
        yield False
        return
    from watchroom.sandbox.proxy import Proxy

    with Proxy(request.hosts, texts) as proxy:
        yield ProxySocket(proxy.path)
    if proxy.reached:
        detail["reached_hosts"] = sorted(proxy.reached)
    if proxy.refused:
        detail["refused_hosts"] = sorted(proxy.refused)
