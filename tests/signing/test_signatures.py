"""Signatures are compatible with OpenSSH, and valid for one text, one namespace and one key."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from effort import rounds
from hypothesis import given, settings
from hypothesis import strategies as st
from watchroom.algorithms.sshsig import parse_key, verify
from watchroom.errors import InvalidPublicKey, InvalidSignature
from watchroom.platform.signing import KeySigner

from signing.devices import Device

NAMESPACE = "watchroom-decision"
SIGNER = KeySigner(bytes(range(32)))
SIGNED = SIGNER.sign(b"yes", NAMESPACE)

needs_ssh_keygen = pytest.mark.skipif(
    not shutil.which("ssh-keygen"), reason="OpenSSH, against which signatures are compared, is not installed"
)


def keygen(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["ssh-keygen", *arguments], input=given, capture_output=True, check=False)


def rule_of(signature: str, message: bytes = b"yes", namespace: str = NAMESPACE) -> str:
    with pytest.raises(InvalidSignature) as caught:
        verify(signature, message, namespace, SIGNER.key)
    return str(caught.value.values["rule"])


@needs_ssh_keygen
def test_ssh_keygen_accepts_what_is_signed_here(tmp_path: Path) -> None:
    (tmp_path / "signers").write_text(f"dana {SIGNER.key.line}\n")
    (tmp_path / "sig").write_text(SIGNED)
    asked = (
        "-Y",
        "verify",
        "-f",
        f"{tmp_path}/signers",
        "-I",
        "dana",
        "-n",
        NAMESPACE,
        "-s",
        f"{tmp_path}/sig",
    )
    assert keygen(*asked, given=b"yes").returncode == 0
    assert keygen(*asked, given=b"no").returncode != 0


@needs_ssh_keygen
def test_what_ssh_keygen_signs_is_accepted_here(tmp_path: Path) -> None:
    path = f"{tmp_path}/key"
    assert keygen("-q", "-t", "ed25519", "-N", "", "-C", "dana@there", "-f", path).returncode == 0
    line = Path(f"{path}.pub").read_text()
    key = parse_key(line)
    assert keygen("-l", "-f", f"{path}.pub").stdout.split()[1].decode() == key.fingerprint
    assert line.startswith(key.line)
    signed = keygen("-Y", "sign", "-f", path, "-n", NAMESPACE, given=b"yes").stdout.decode()
    verify(signed, b"yes", NAMESPACE, key)


def test_a_signature_of_something_else_does_not_count() -> None:
    verify(SIGNED, b"yes", NAMESPACE, SIGNER.key)
    assert rule_of(SIGNED, b"no") == "signature_wrong"
    assert rule_of(SIGNED, namespace="git") == "signature_namespace"
    assert rule_of(KeySigner(bytes(32)).sign(b"yes", NAMESPACE)) == "signature_key"
    assert rule_of(SIGNED.replace("SSH", "PGP")) == "signature_damaged"
    assert rule_of("x" * 10_000) == "signature_damaged"


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa"])
def test_a_device_has_to_be_touched_for_each_signature(kind: str) -> None:
    device = Device(kind)
    key = parse_key(f"{device.key.line} dana's token")
    verify(device.sign(b"yes", NAMESPACE), b"yes", NAMESPACE, key)
    for signature, rule in (
        (device.sign(b"yes", NAMESPACE, touched=False), "signature_untouched"),
        (device.sign(b"no", NAMESPACE), "signature_wrong"),
    ):
        with pytest.raises(InvalidSignature) as caught:
            verify(signature, b"yes", NAMESPACE, key)
        assert caught.value.values["rule"] == rule


@settings(max_examples=rounds(100, 200))
@given(st.integers(0, len(SIGNED) - 1), st.sampled_from("A/\n-é0"))
def test_a_damaged_signature_is_refused(at: int, character: str) -> None:
    damaged = f"{SIGNED[:at]}{character}{SIGNED[at + 1 :]}"
    if "".join(damaged.split()) != "".join(SIGNED.split()):
        rule_of(damaged)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "ssh-ed25519",
        "ssh-rsa AAAA",
        "ssh-ed25519 AAAA",
        "ssh-ed25519 é",
        f"sk-ssh-ed25519@openssh.com {SIGNER.key.line.split()[1]}",
        f"{SIGNER.key.line}AAAA",
        f"{SIGNER.key.line} {'x' * 3000}",
    ],
)
def test_what_is_no_key_is_refused(line: str) -> None:
    with pytest.raises(InvalidPublicKey):
        parse_key(line)
