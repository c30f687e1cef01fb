"""Post seals to the webhook in the settings, as alerts are posted."""

from __future__ import annotations

from collections.abc import Mapping

from watchroom.errors import NotPublished
from watchroom.features.alerts.rules import is_web_address
from watchroom.kernel.rules.seal_note import SignedSeal
from watchroom.model import Json, timestamp
from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.plain.json_post import DeliveryFailed, post_json, resolve_variable

_ENTRY = "publish.webhook"


class SealWebhook:
    """Posts seals to ``url``. It remembers the posted seal, because a webhook cannot be read back."""

    def __init__(self, url: str, texts: Catalogue) -> None:
        self._url = url
        self._texts = texts
        self._posted: SignedSeal | None = None

    @property
    def place(self) -> str:
        """The name of the entry in the settings, because the address may be a secret."""
        return _ENTRY

    def newest(self, workspace: str) -> SignedSeal | None:
        """Return the last posted seal of ``workspace`` (its id), None if there is none."""
        posted = self._posted
        return posted if posted is not None and posted.seal.workspace == workspace else None

    def add(self, signed: SignedSeal) -> None:
        """Post ``signed``. Raises `NotPublished`."""
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
        self._posted = signed


def open_webhook(address: str, environ: Mapping[str, str], texts: Catalogue) -> SealWebhook:
    """Return a webhook for ``address``, or for the environment variable that it names (``$NAME``). Raises
    `WrongUsage` if the address is invalid."""
    url = resolve_variable(_ENTRY, address, environ, texts)
    if not is_web_address(url):
        raise WrongUsage(texts("watch.alert.no_address", entry=_ENTRY))
    return SealWebhook(url, texts)
