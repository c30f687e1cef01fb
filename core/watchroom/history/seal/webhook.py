"""Post seals to an address."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Final

from watchroom.errors import DeliveryUnusable, NotPublished
from watchroom.features.alerts.rules import is_web_address
from watchroom.history.seal.anchors import SEAL_FOLDER, find_seal_file, state_folder
from watchroom.kernel.rules.seal_note import SignedSeal
from watchroom.model import Json, timestamp
from watchroom.platform.files import replace_durably
from watchroom.platform.json_post import DeliveryFailed, post_json, resolve_variable
from watchroom.texts import Catalogue

_ENTRY: Final = "publish.webhook"


class SealWebhook:
    """Posts seals to ``url``.

    An address cannot be read back. The newest posted seal is therefore kept in the folder ``state``, so that
    no process posts it again.
    """

    def __init__(self, url: str, texts: Catalogue, state: str) -> None:
        self._url = url
        self._texts = texts
        self._folder = os.path.join(state, SEAL_FOLDER)
        self._suffix = hashlib.sha256(url.encode()).hexdigest()[:16]

    @property
    def place(self) -> str:
        """The name of the entry in the settings, because the address may be a secret."""
        return _ENTRY

    def newest(self, workspace: str) -> SignedSeal | None:
        """Return the newest posted seal of ``workspace`` (its id), None if there is none."""
        return find_seal_file(self._file(workspace))

    def add(self, signed: SignedSeal) -> None:
        """Post ``signed``. Raise `NotPublished`, OSError."""
        seal = signed.seal
        root = seal.root.hex()
        payload: dict[str, Json] = {
            "event": "checkpoint",
            "workspace": seal.workspace,
            "row": seal.seq,
            "size": seal.size,
            "root": root,
            "time": timestamp(seal.time),
            "checkpoint": signed.text,
        }
        try:
            post_json(self._url, payload, self._texts, key=f"{seal.workspace}-{seal.size}-{root}")
        except DeliveryFailed as failure:
            raise NotPublished(place=self.place, reason=str(failure)) from failure
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        replace_durably(self._file(seal.workspace), signed.text.encode("ascii"))

    def _file(self, workspace: str) -> str:
        return os.path.join(self._folder, f"{workspace}.posted-{self._suffix}")


def open_webhook(address: str, environ: Mapping[str, str], texts: Catalogue) -> SealWebhook:
    """Return a webhook for ``address``, or for the environment variable that it names (``$NAME``). Raise
    `DeliveryUnusable` if the address is invalid."""
    url = resolve_variable(_ENTRY, address, environ, texts)
    if not is_web_address(url):
        raise DeliveryUnusable(problem=texts("alert.no_address", entry=_ENTRY))
    return SealWebhook(url, texts, state_folder())
