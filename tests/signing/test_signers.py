"""A key signs only while it is unlocked, and never leaves the process that holds it."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from child_processes import ends
from watchroom.algorithms.sshsig import WireReader, encode_strings, verify
from watchroom.errors import InvalidSignature, KeyFileUnusable, SignerFailed, SignerLocked, WrongPassphrase
from watchroom.platform.signing import (
    DeviceSigner,
    SignerProcess,
    create_key_file,
    list_device_keys,
    open_key_file,
    read_public_key,
)
from watchroom.platform.signing.serve_key import harden

from signing.devices import Device

CHEAP = 2**4
NAMESPACE = "watchroom-decision"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return the path of a new key file with the passphrase ``open sesame``."""
    found = str(tmp_path / "keys/dana.json")
    create_key_file(found, "open sesame", cost=CHEAP)
    return found


def test_a_key_file_opens_with_its_passphrase_only_and_is_never_replaced(path: str) -> None:
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    signer = open_key_file(path, "open sesame")
    assert signer.key == read_public_key(path)
    verify(signer.sign(b"yes", NAMESPACE), b"yes", NAMESPACE, signer.key)
    with pytest.raises(WrongPassphrase):
        open_key_file(path, "open says me")
    with pytest.raises(KeyFileUnusable):
        create_key_file(path, "another", cost=CHEAP)
    assert open_key_file(path, "open sesame").key == signer.key


@pytest.mark.parametrize(
    "changed",
    [
        {"cost": 2**30},
        {"cost": 3},
        {"cost": "16"},
        {"format": "2"},
        {"salt": "AA=="},
        {"key": "ssh-rsa A"},
        {"nonce": 1},
    ],
)
def test_a_file_that_is_no_key_is_refused_before_it_costs_anything(
    path: str, changed: dict[str, object]
) -> None:
    fields = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps({**fields, **changed}))
    with pytest.raises(KeyFileUnusable):
        open_key_file(path, "open sesame")


def test_a_key_of_another_in_the_file_is_not_believed(path: str, tmp_path: Path) -> None:
    other = create_key_file(str(tmp_path / "other"), "x", cost=CHEAP)
    fields = json.loads(Path(path).read_text())
    Path(path).write_text(json.dumps({**fields, "key": other.line}))
    with pytest.raises(WrongPassphrase):
        open_key_file(path, "open sesame")


def test_a_process_signs_until_it_is_locked(path: str) -> None:
    signer = SignerProcess.unlock(path, "open sesame")
    verify(signer.sign(b"yes", NAMESPACE), b"yes", NAMESPACE, signer.key)
    verify(signer.sign(b"x" * 100_000, NAMESPACE), b"x" * 100_000, NAMESPACE, signer.key)
    before = signer.is_locked
    signer.lock()
    assert (before, signer.is_locked) == (False, True)
    with pytest.raises(SignerLocked):
        signer.sign(b"yes", NAMESPACE)
    with pytest.raises(WrongPassphrase):
        SignerProcess.unlock(path, "open says me")
    with pytest.raises(KeyFileUnusable):
        SignerProcess.unlock(f"{path}.gone", "open sesame")


def test_modules_in_the_working_directory_do_not_get_the_passphrase(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "json.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    monkeypatch.chdir(planted)
    signer = SignerProcess.unlock(path, "open sesame")
    signer.lock()
    assert not (tmp_path / "ran").exists()


def test_a_key_that_nobody_uses_locks_itself(path: str) -> None:
    signer = SignerProcess.unlock(path, "open sesame", idle_seconds=0.05)
    signer._process.wait(30)
    assert signer.is_locked
    with pytest.raises(SignerLocked):
        signer.sign(b"yes", NAMESPACE)


SLEEPING = """
import os, time
real = time.clock_gettime

def clock_gettime(clock):
    slept = float(open(os.environ["SLEPT"]).read()) if clock == time.CLOCK_BOOTTIME else 0.0
    return real(clock) + slept

time.clock_gettime = clock_gettime
"""
"""A machine that has slept for the seconds in a file, as far as a process sees it."""


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the clock of Linux that counts sleep")
@pytest.mark.parametrize("is_used", [True, False])
def test_a_key_locks_itself_although_the_machine_sleeps(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_used: bool
) -> None:
    def sleep(seconds: int) -> None:
        (tmp_path / "new").write_text(f"{seconds}")
        os.replace(tmp_path / "new", tmp_path / "slept")

    sleep(0)
    (tmp_path / "sitecustomize.py").write_text(SLEEPING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("SLEPT", str(tmp_path / "slept"))
    signer = SignerProcess.unlock(path, "open sesame", idle_seconds=900)
    sleep(800)
    verify(signer.sign(b"yes", NAMESPACE), b"yes", NAMESPACE, signer.key)
    sleep(36_000)
    if is_used:
        with pytest.raises(SignerLocked):
            signer.sign(b"yes", NAMESPACE)
    signer._process.wait(30)
    assert signer.is_locked


def test_it_ends_with_the_process_that_began_it(path: str) -> None:
    code = (
        "import os, sys\n"
        "from watchroom.platform.signing import SignerProcess\n"
        "signer = SignerProcess.unlock(sys.argv[1], 'open sesame')\n"
        "print(signer._process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert ends(int(done.stdout), 30)


@pytest.mark.skipif(sys.platform != "linux", reason="what keeps a process's memory closed is asked of Linux")
def test_its_memory_is_closed_to_other_processes_of_the_user() -> None:
    child = os.fork()
    if child == 0:
        harden()
        # PR_GET_DUMPABLE
        os._exit(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class AgentServer:
    """Start an ssh-agent on a socket, with one device and a plain key."""

    def __init__(self, path: str, device: Device, plain: bytes) -> None:
        self.device, self.touched = device, True
        self._plain = plain
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                asked = WireReader(WireReader(connection.recv(65536)).string())
                connection.sendall(encode_strings(self._answer(asked)))

    def _answer(self, asked: WireReader) -> bytes:
        if asked.take(1)[0] == 11:
            keys = (self._plain, b"a plain key"), (self.device.key.blob, b"a token")
            return (
                bytes([12]) + len(keys).to_bytes(4, "big") + b"".join(encode_strings(*each) for each in keys)
            )
        asked.string()
        return bytes([14]) + encode_strings(self.device.sign_data(asked.string(), touched=self.touched))

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def agent(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentServer]:
    monkeypatch.setenv("SSH_AUTH_SOCK", f"{tmp_path}/agent")
    server = AgentServer(f"{tmp_path}/agent", Device(), read_public_key(path).blob)
    yield server
    server.close()


def test_ssh_agent_signs_with_devices_only(agent: AgentServer, path: str) -> None:
    assert list_device_keys() == [agent.device.key]
    signer = DeviceSigner(agent.device.key)
    verify(signer.sign(b"yes", NAMESPACE), b"yes", NAMESPACE, signer.key)
    agent.touched = False
    with pytest.raises(InvalidSignature):
        verify(signer.sign(b"yes", NAMESPACE), b"yes", NAMESPACE, signer.key)
    with pytest.raises(SignerFailed):
        DeviceSigner(read_public_key(path))


def test_without_an_agent_there_are_no_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    assert list_device_keys() == []
    monkeypatch.setenv("SSH_AUTH_SOCK", f"{tmp_path}/none")
    with pytest.raises(SignerFailed):
        list_device_keys()
