"""Keys of the person at this machine: replace a key, and create a recovery key."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
from typing import TYPE_CHECKING, Final

from watchroom.algorithms.sshsig import PublicKey, parse_key
from watchroom.errors import PersonRefused
from watchroom.features.people.rows import Person
from watchroom.model import HUMAN_PREFIX
from watchroom.texts import Catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services.signing_keys import key_path

from watchroom_cli.acting_person import unlock_key
from watchroom_cli.passphrase import ask_passphrase, choose_passphrase

if TYPE_CHECKING:
    from watchroom.platform.signing import KeySigner

_PRIVATE_BYTES: Final = 32
_GROUP: Final = 4
"""Characters in a group of a recovery code."""


def make_key_file(path: str, texts: Catalogue) -> PublicKey:
    """Ask for a passphrase, and create a key encrypted with it in the file ``path``. Raise
    `KeyFileUnusable`, `WrongUsage`."""
    from watchroom.platform.signing import create_key_file

    chosen = choose_passphrase(
        texts("cli.person.choose", path=path), texts("cli.person.again"), texts("cli.person.differ")
    )
    return create_key_file(path, chosen)


def rotate_key(workspace: Workspace, name: str, *, is_lost: bool, texts: Catalogue) -> PublicKey:
    """Replace the key file of a person, and return the new key.

    - ``name``: the person's name.
    - ``is_lost``: whether the old key is lost. Then the person types the recovery key, which signs the
      replacement, and only the recovery key and device keys stay enrolled. Otherwise the old key signs.

    The old file is kept as ``.old``. Raise `PersonRefused`, `WrongUsage`, and the errors of
    `unlock_key`.
    """
    from watchroom.platform.signing import read_public_key

    person, path = _find_enrolled(workspace, name), key_path(name)
    new_path = f"{path}.new"
    if _is_enrolled(person, new_path):
        # An earlier replacement was interrupted after it enrolled the new key.
        _replace(path, new_path)
        return read_public_key(path)
    if os.path.exists(new_path):
        os.unlink(new_path)
    people, old = workspace.people.current(), f"{path}.old"
    if not is_lost and not _is_enrolled(person, path) and _is_enrolled(person, old):
        # The key was replaced in another workspace of this person.
        key = read_public_key(path)
        unlock_key(workspace, people, name, texts, old)
        kept = [line for line in person.keys if line != read_public_key(old).line]
        workspace.people.add(HUMAN_PREFIX + name, person._replace(keys=(key.line, *kept)))
        return key
    if is_lost:
        workspace.signing.signer = _ask_recovery(texts)
    else:
        unlock_key(workspace, people, name, texts)
    key = make_key_file(new_path, texts)
    signer = workspace.signing.signer
    signs = "" if signer is None else signer.key.line
    if is_lost:
        kept = [line for line in person.keys if line == signs or parse_key(line).is_touched]
    else:
        kept = [line for line in person.keys if line != signs]
    workspace.people.add(HUMAN_PREFIX + name, person._replace(keys=(key.line, *kept)))
    _replace(path, new_path)
    return key


def make_recovery_key(workspace: Workspace, name: str, texts: Catalogue) -> str:
    """Enrol a recovery key for the person ``name``, and return the key as a code to write down. The private
    key is stored nowhere. Raise `PersonRefused`, `WrongUsage`, and the errors of `unlock_key`."""
    from watchroom.platform.signing import KeySigner

    person = _find_enrolled(workspace, name)
    unlock_key(workspace, workspace.people.current(), name, texts)
    private = secrets.token_bytes(_PRIVATE_BYTES)
    line = KeySigner(private).key.line
    workspace.people.add(HUMAN_PREFIX + name, person._replace(keys=(*person.keys, line)))
    code = base64.b32encode(private).decode().rstrip("=")
    return "-".join(code[start : start + _GROUP] for start in range(0, len(code), _GROUP))


def _is_enrolled(person: Person, path: str) -> bool:
    """Return whether the key in the file at ``path`` is enrolled for ``person``."""
    from watchroom.platform.signing import read_public_key

    return os.path.exists(path) and read_public_key(path).line in person.keys


def _replace(path: str, new_path: str) -> None:
    if os.path.exists(path):
        os.replace(path, f"{path}.old")
    os.replace(new_path, path)


def _ask_recovery(texts: Catalogue) -> KeySigner:
    from watchroom.platform.signing import KeySigner

    code = ask_passphrase(texts("cli.person.recovery_code")).replace("-", "").replace(" ", "").upper()
    try:
        private = base64.b32decode(code + "=" * (-len(code) % 8))
    except binascii.Error as error:
        raise WrongUsage(texts("cli.person.no_recovery_code")) from error
    if len(private) != _PRIVATE_BYTES:
        raise WrongUsage(texts("cli.person.no_recovery_code"))
    return KeySigner(private)


def _find_enrolled(workspace: Workspace, name: str) -> Person:
    person = workspace.people.current().find(HUMAN_PREFIX + name)
    if person is None:
        raise PersonRefused(person=name, rule="person_unknown")
    return person
