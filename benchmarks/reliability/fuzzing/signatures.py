"""Inputs of `verify` and enrolment: keys, signatures, checkpoints and key files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, Self

from watchroom.algorithms.sshsig import parse_key, parse_signing_key, verify
from watchroom.errors import WatchroomError
from watchroom.kernel.rules.seal_note import Seal, parse_signed, render_seal
from watchroom.platform.signing.key_file import KeySigner, create_key_file, open_key_file, read_public_key

from reliability.fuzzing.engine import SLOW_SECONDS
from reliability.fuzzing.mutation import mutated
from reliability.fuzzing.oracle import refusal_kind, require

_NAMESPACE: Final = "watchroom-checkpoint"
_MESSAGE: Final = b"message"
_TOKENS: Final = (
    *(
        b"ssh-ed25519 ",
        b"sk-ssh-ed25519@openssh.com ",
        b"sk-ecdsa-sha2-nistp256@openssh.com ",
        b"AAAA",
        b"==",
        b" ",
    ),
    *(
        b"-----BEGIN SSH SIGNATURE-----\n",
        b"-----END SSH SIGNATURE-----\n",
        b"\n\n",
        b"watchroom/",
        b"seq ",
        b"time ",
    ),
    *(b"0", b"9" * 40, b'"cost": 1048576', b'"cost": true', b'"cost": 2', b"null", b"[]", b"{}", b"\\ud800"),
)
_PASSPHRASE: Final = "x"


class Signatures:
    """Checks that each is refused with a code, or equals the valid one."""

    name = "signatures"
    size = 20_000
    period = 1_000_000_000
    slow_seconds = SLOW_SECONDS

    def __init__(self, folder: Path) -> None:
        self._path = folder / "key"
        self._path.unlink(missing_ok=True)
        signer = KeySigner(bytes(range(32)))
        self._key = signer.key
        self._signature = signer.sign(_MESSAGE, _NAMESPACE)
        checkpoint = Seal("0" * 32, 7, bytes(32), 9, 10**18)
        body = render_seal(checkpoint)
        create_key_file(str(self._path), _PASSPHRASE, cost=2)
        self._kinds: Mapping[bytes, tuple[bytes, Callable[[bytes], Hashable]]] = {
            b"k": (self._key.line.encode(), self._run_key),
            b"s": (self._signature.encode(), self._run_signature),
            b"c": (f"{body}\n{self._signature}".encode(), self._run_checkpoint),
            b"f": (self._path.read_bytes(), self._run_file),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to release."""

    def generate(self, chance: Random) -> bytes:
        kind = chance.choice(list(self._kinds))
        return self.mutate(kind + self._kinds[kind][0], b"", chance)

    def mutate(self, data: bytes, other: bytes, chance: Random) -> bytes:
        return data[:1] + mutated(data[1:], chance, self.size, _TOKENS, other[1:])

    def run(self, data: bytes) -> Hashable:
        _, run = self._kinds[data[:1]]
        try:
            return data[:1], run(data[1:])
        except WatchroomError as error:
            return data[:1], refusal_kind(error)

    def check(self) -> Sequence[str]:
        return ()

    def _run_key(self, data: bytes) -> Hashable:
        key = parse_key(data.decode("utf-8", "surrogateescape"))
        require(parse_key(key.line) == key, "a key that is another one when it is read again")
        return key.kind, key.fingerprint == self._key.fingerprint

    def _run_signature(self, data: bytes) -> Hashable:
        signature = data.decode("utf-8", "surrogateescape")
        parse_signing_key(signature)
        verify(signature, _MESSAGE, _NAMESPACE, self._key)
        # Line breaks do not matter.
        is_ours = "".join(signature.split()) == "".join(self._signature.split())
        require(is_ours, "another signature that holds")
        return "holds"

    def _run_checkpoint(self, data: bytes) -> Hashable:
        signed = parse_signed(data.decode("utf-8", "surrogateescape"))
        require(render_seal(signed.seal) == signed.body, "another body")
        return bool(signed.signature)

    def _run_file(self, data: bytes) -> Hashable:
        self._path.write_bytes(data)
        key = read_public_key(str(self._path))
        # Not with other costs, which can make a valid key slow to open.
        if b'"cost": 2' in data:
            require(open_key_file(str(self._path), _PASSPHRASE).key == key, "a file opened as another key")
        return key.kind
