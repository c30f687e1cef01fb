"""Publish seals to the places in this user's settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

if TYPE_CHECKING:
    from watchroom.history.seal import Sealing
    from watchroom.workspace import Workspace
    from watchroom_tui.services.settings import Settings

    from watchroom_cli.plain.seal_webhook import SealWebhook

_log = logging.getLogger("watchroom")


def publish_as_set(sealing: Sealing, settings: Settings, webhook: SealWebhook | None = None) -> None:
    """Publish the seals of ``sealing`` to the folder and the branch in ``settings``, and to ``webhook``."""
    from watchroom.history.git import SealBranch

    folder, repository, name = settings.publication
    sealing.publish_to(folder, SealBranch(repository, name) if repository else None)
    if webhook is not None:
        sealing.publish_on(webhook)


def publish_later(workspace: Workspace, texts: Catalogue) -> None:
    """Publish seals of ``workspace`` to the folder and the branch in the settings.

    The settings are read when the first seal is due, because most processes end before that. An error in them
    is logged. Nothing is posted to the webhook, because every process would post it.
    """

    def prepare(sealing: Sealing) -> None:
        from watchroom_tui.services.settings import read_settings, settings_path

        try:
            publish_as_set(sealing, read_settings(settings_path(), texts))
        except WrongUsage as error:
            _log.warning("no seal is published: %s", error)

    workspace.prepare_sealing = prepare
