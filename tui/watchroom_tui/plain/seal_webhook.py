"""Posts checkpoints to an address that a person chose, as alerts are posted."""

from __future__ import annotations

from collections.abc import Mapping

from watchroom.model import Json, timestamp
from watchroom.rules.alerts import is_web_address
from watchroom.rules.checkpoint_note import SignedCheckpoint
from watchroom.texts import Catalogue
from watchroom.transparency import NotPublished

from watchroom_tui.plain.json_post import DeliveryFailed, post_json, resolve_variable
from watchroom_tui.usage import WrongUsage

_ENTRY = "publish.webhook"


class SealWebhook:
    """Posts to ``url``. What it has posted it knows by itself: an address cannot be asked."""

    def __init__(self, url: str, texts: Catalogue) -> None:
        self._url = url
        self._texts = texts
        self._posted: SignedCheckpoint | None = None

    @property
    def place(self) -> str:
        """What it is called in the settings: the address may be a secret."""
        return _ENTRY

    def newest(self, workspace: str) -> SignedCheckpoint | None:
        """The last checkpoint of ``workspace`` (its id) that was posted here."""
        posted = self._posted
        return posted if posted is not None and posted.checkpoint.workspace == workspace else None

    def add(self, signed: SignedCheckpoint) -> None:
        """Post ``signed``. Raises `NotPublished`."""
        checkpoint = signed.checkpoint
        root = checkpoint.root.hex()
        payload: dict[str, Json] = {
            "event": "checkpoint",
            "workspace": checkpoint.workspace,
            "row": checkpoint.seq,
            "size": checkpoint.size,
            "root": root,
            "time": timestamp(checkpoint.time),
            "checkpoint": signed.text,
        }
        try:
            post_json(self._url, payload, self._texts, key=f"{checkpoint.workspace}-{checkpoint.size}-{root}")
        except DeliveryFailed as failure:
            raise NotPublished(place=self.place, reason=str(failure)) from failure
        self._posted = signed


def open_webhook(address: str, environ: Mapping[str, str], texts: Catalogue) -> SealWebhook:
    """What posts to ``address``, or to that in the variable of ``environ`` which it names. Raises
    `WrongUsage` where that is no address."""
    url = resolve_variable(_ENTRY, address, environ, texts)
    if not is_web_address(url):
        raise WrongUsage(texts("watch.alert.no_address", entry=_ENTRY))
    return SealWebhook(url, texts)
