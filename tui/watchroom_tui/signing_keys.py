"""The keys of the person at this machine: where they lie, and how they are unlocked."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from watchroom.algorithms.sshsig import PublicKey, parse_key
from watchroom.model import HUMAN_PREFIX

if TYPE_CHECKING:
    from watchroom.features.people.rows import People
    from watchroom.platform.signing import Signer


def key_path(name: str) -> str:
    """Where the key file of the person called ``name`` is."""
    from platformdirs import user_config_path

    return str(user_config_path("watchroom", appauthor=False) / "keys" / f"{name}.json")


def enrolled_keys(people: People, name: str) -> list[PublicKey]:
    """The keys by which the person called ``name`` is known."""
    person = people.find(HUMAN_PREFIX + name)
    return [] if person is None else [parse_key(line) for line in person.keys]


def find_device(people: People, name: str) -> Signer | None:
    """The FIDO2 device of the person called ``name`` that is at this machine, if there is one. Raises
    `SignerFailed`."""
    if not any(key.is_touched for key in enrolled_keys(people, name)):
        return None
    from watchroom.platform.signing import DeviceSigner, list_device_keys

    enrolled = enrolled_keys(people, name)
    found = next((key for key in list_device_keys() if key in enrolled), None)
    return None if found is None else DeviceSigner(found)


def open_signer(people: People, name: str, ask: Callable[[str], str], path: str = "") -> Signer | None:
    """What signs for the person called ``name``: a device, or the key file at ``path`` (default: the one of
    that name), whose passphrase ``ask`` gives when it is told the path. None where there is neither. Raises
    `SignerFailed`, `KeyFileUnusable`, `WrongPassphrase`."""
    if not path and (device := find_device(people, name)) is not None:
        return device
    path = path or key_path(name)
    if not os.path.exists(path):
        return None
    from watchroom.platform.signing import open_key_file

    return open_key_file(path, ask(path))
