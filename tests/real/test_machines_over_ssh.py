"""Workspaces on other machines over ssh. The machines are network namespaces of this machine, each with an sshd."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil
import pytest
from machine_links import PATIENCE, PROGRAM, Near, ask, near
from pty_driver import Terminal
from watchroom import Workspace
from watchroom.features.requests.service import find_request_end
from watchroom.model import ANSWER, Row
from watchroom.serving.machines.address import Machine, parse_machine
from watchroom.serving.machines.messages import ANSWER_SECONDS

pytestmark = pytest.mark.real

MAX_SECONDS: Final = 15.0
"""Seconds in which a lost connection must be shown."""
SSHD: Final = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""
POINTER_SHAPE: Final = re.compile(rb"\x1b\]22;[a-z-]*\x07")
_SSHD_CONFIG: Final = """
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""
_SSH_CONFIG: Final = """
Host *
IdentityFile {folder}/user
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile /dev/null
"""


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _may_make_namespaces() -> bool:
    name = f"wr-try-{os.getpid()}"
    with suppress(OSError, subprocess.CalledProcessError):
        _run("ip", "netns", "add", name)
        _run("ip", "netns", "delete", name)
        return True
    return False


class Host(NamedTuple):
    """A machine: its network ``namespace``, its ``address``, and its link in its own namespace."""

    name: str
    namespace: str
    address: str
    link: str

    def set_link(self, state: str) -> None:
        """Switch the network of the machine ``up`` or ``down``."""
        _run("ip", "-n", self.namespace, "link", "set", self.link, state)

    def machine(self, root: str) -> Machine:
        return parse_machine(self.name, f"ssh://root@{self.address}{root}", PROGRAM)


class Network:
    """Two machines with sshd, and a third namespace in which ssh runs."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._near = f"wr-near-{os.getpid()}"
        for key in ("host", "user"):
            _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
        (folder / "config").write_text(_SSH_CONFIG.format(folder=folder))
        programs = folder / "programs"
        programs.mkdir()
        ssh, real = programs / "ssh", shutil.which("ssh")
        ssh.write_text(f'#!/bin/sh\nexec ip netns exec {self._near} {real} -F {folder}/config "$@"\n')
        ssh.chmod(0o755)
        self.path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self._add_namespace(self._near)
        self.hosts = [self._add_host(number, name) for number, name in ((1, "lab"), (2, "attic"))]
        self.trust(self.hosts)

    def trust(self, hosts: Sequence[Host]) -> None:
        """Make only the keys of ``hosts`` known to ssh."""
        key = " ".join((self.folder / "host.pub").read_text().split()[:2])
        (self.folder / "known").write_text("".join(f"{each.address} {key}\n" for each in hosts))

    def _add_namespace(self, name: str) -> None:
        _run("ip", "netns", "add", name)
        self._stack.callback(self._remove_namespace, name)
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def _remove_namespace(self, name: str) -> None:
        for pid in _run("ip", "netns", "pids", name).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _run("ip", "netns", "delete", name)

    def _add_host(self, number: int, name: str) -> Host:
        host = Host(name, f"wr-{name}-{os.getpid()}", f"10.199.{number}.2", f"far{number}")
        self._add_namespace(host.namespace)
        near_link = f"near{number}"
        peer = ("peer", "name", host.link, "netns", host.namespace)
        _run("ip", "-n", self._near, "link", "add", near_link, "type", "veth", *peer)
        for namespace, link, end in ((self._near, near_link, 1), (host.namespace, host.link, 2)):
            _run("ip", "-n", namespace, "address", "add", f"10.199.{number}.{end}/24", "dev", link)
            _run("ip", "-n", namespace, "link", "set", link, "up")
        config = self.folder / f"sshd-{name}"
        config.write_text(_SSHD_CONFIG.format(address=host.address, folder=self.folder))
        log = str(self.folder / f"sshd-{name}.log")
        command = ["ip", "netns", "exec", host.namespace, SSHD, "-D", "-E", log, "-f", str(config)]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        self._stack.callback(server.wait)
        self._stack.callback(server.kill)
        return host


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    if not SSHD or not shutil.which("ip") or os.getuid() != 0 or not _may_make_namespaces():
        pytest.skip("NOT RUN: needs root, sshd, and the right to make network namespaces")
    os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    with ExitStack() as stack:
        # sshd reads the keys as another user, who must reach them.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wr-ssh-")))
        folder.chmod(0o755)
        yield Network(folder, stack)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "far", agents=["alice", "zoe"]) as opened:
        yield opened


def answers(workspace: Workspace) -> list[Row]:
    return [each for each in workspace.journal.rows(0) if each.tool == ANSWER]


def far_end_of(workspace: Workspace) -> psutil.Process:
    """Return the process that serves ``workspace`` to another machine."""
    root = str(workspace.root)
    (found,) = [
        each
        for each in psutil.process_iter(["cmdline"])
        if {"machine", "serve", root} <= {*(each.info["cmdline"] or ())}
        and os.path.basename(each.info["cmdline"][0]).startswith("python")
    ]
    return found


def test_agents_of_three_machines_are_in_one_list_and_a_permission_is_answered_across(
    network: Network, far: Workspace, tmp_path: Path
) -> None:
    lab, attic = network.hosts
    other = tmp_path / "other"
    Workspace.open(other, agents=["max"]).close()
    here = tmp_path / "here"
    Workspace.open(here, agents=["carol"]).close()
    number = ask(far)
    settings = tmp_path / "config/watchroom/settings.toml"
    settings.parent.mkdir(parents=True)
    lines = [
        f'{host.name} = {{ address = "ssh://root@{host.address}{root}", program = "{PROGRAM}" }}\n'
        for host, root in ((lab, far.root), (attic, other))
    ]
    settings.write_text("[machines]\n" + "".join(lines))
    with ExitStack() as stack:
        environment = {
            "PATH": network.path,
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_RUNTIME_DIR": stack.enter_context(tempfile.TemporaryDirectory(prefix="wr-")),
        }
        command = [PROGRAM, "open", str(here), "--as", "dana"]
        terminal = stack.enter_context(Terminal(command, 120, 40, env=environment))
        for text in ("carol", "lab/alice", "lab/zoe", "attic/max", "1 needs you"):
            terminal.wait_for_text(text, timeout=PATIENCE)
        terminal.wait_for(
            lambda _: b"\x07" in POINTER_SHAPE.sub(b"", terminal.raw()), what="the bell", timeout=PATIENCE
        )
        terminal.send("!")
        terminal.send("a")
        terminal.wait_for_text("lab/alice: answer accepted (approved)", timeout=PATIENCE)
        (answer,) = answers(far)
        assert (answer.actor, answer.detail["request"]) == ("human:dana", number)

        began = time.monotonic()
        lab.set_link("down")
        terminal.wait_for_text("no connection since", timeout=MAX_SECONDS)
        terminal.wait_for_text("unknown; last known", timeout=1)
        print(f"shown after {time.monotonic() - began:.1f} s")
        assert any("attic/max" in line and "?" not in line for line in terminal.screen())
        lab.set_link("up")
        terminal.wait_for_text("machine lab: far, connected since", timeout=2 * PATIENCE)
        terminal.send("q")
        assert terminal.wait(PATIENCE) == 0
        subprocess.run(
            [PROGRAM, "service", "stop"], env={**os.environ, **environment}, check=False, capture_output=True
        )


def test_a_frozen_machine_carries_out_no_answer_after_it_was_given_up(
    network: Network, far: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", network.path)
    number = ask(far)
    asked = far.journal.row(number)
    assert asked is not None
    with near(network.hosts[0].machine(str(far.root))) as found:
        need = found.need()
        frozen = far_end_of(far)
        frozen.send_signal(signal.SIGSTOP)
        found.machines.answer("lab", need, "approve")
        waited = found.until(lambda: found.view.state == "lost", "lost")
        assert waited < MAX_SECONDS
        found.until(lambda: found.fates == ["unknown", "absent"], "the truth", 2 * PATIENCE)
        # The answer is still in the pipe of the frozen process.
        assert frozen.is_running()
        frozen.send_signal(signal.SIGCONT)
        frozen.wait(ANSWER_SECONDS + PATIENCE)
        assert find_request_end(far.journal, far.people, asked.path) is None
        assert answers(far) == []
        _answer_again(found)
    (answer,) = answers(far)
    assert answer.outcome == "ok"


def _answer_again(found: Near) -> None:
    found.machines.answer("lab", found.need(), "approve")
    found.until(lambda: found.fates[2:] == ["accepted"], "answered again")


def test_an_unknown_host_key_is_refused_by_ssh(
    network: Network, far: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", network.path)
    lab, attic = network.hosts
    network.trust([attic])
    try:
        with near(lab.machine(str(far.root))) as found:
            found.until(lambda: "Host key verification failed" in found.view.reason, "the reason")
            assert (found.view.state, found.view.agents) == ("lost", ())
    finally:
        network.trust([lab, attic])
