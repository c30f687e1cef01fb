"""Signing keys of people at this machine: key files, devices and unlocking."""

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
    """Return the path of a person's key file. ``name``: the name of the person."""
    from platformdirs import user_config_path

    return str(user_config_path("watchroom", appauthor=False) / "keys" / f"{name}.json")


def enrolled_keys(people: People, name: str) -> list[PublicKey]:
    """Return the enrolled keys of a person. ``name``: the name of the person."""
    person = people.find(HUMAN_PREFIX + name)
    return [] if person is None else [parse_key(line) for line in person.keys]


def find_device(people: People, name: str) -> Signer | None:
    """Return a person's FIDO2 device at this machine, or None. ``name``: the name of the person. Raise
    `SignerFailed`."""
    if not any(key.is_touched for key in enrolled_keys(people, name)):
        return None
    from watchroom.platform.signing import DeviceSigner, list_device_keys

    enrolled = enrolled_keys(people, name)
    found = next((key for key in list_device_keys() if key in enrolled), None)
    return None if found is None else DeviceSigner(found)


def open_signer(people: People, name: str, ask: Callable[[str], str], path: str = "") -> Signer | None:
    """Return the signer for a person: a device, else a key file. None without a device and a key file.

    - ``name``: the person's name.
    - ``ask``: callback for the passphrase. Its argument is the path of the key file.
    - ``path``: the path of the key file, default: `key_path`. A given path disables devices.

    Raise `SignerFailed`, `KeyFileUnusable`, `WrongPassphrase`.
    """
    if not path and (device := find_device(people, name)) is not None:
        return device
    path = path or key_path(name)
    if not os.path.exists(path):
        return None
    from watchroom.platform.signing import open_key_file

    return open_key_file(path, ask(path))
