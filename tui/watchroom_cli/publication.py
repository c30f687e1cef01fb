"""Send alerts, and publish seals to the places in this user's settings, while a workspace is open."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from watchroom.errors import DeliveryUnusable
from watchroom.texts import Language, catalogue
from watchroom_tui.presentation.localization import load_texts
from watchroom_tui.presentation.usage import WrongUsage

if TYPE_CHECKING:
    from watchroom.history.seal import Sealing
    from watchroom.workspace import Workspace
    from watchroom_tui.services.settings import Settings

_log = logging.getLogger("watchroom")


def publish_as_set(sealing: Sealing, settings: Settings) -> None:
    """Publish the seals of ``sealing`` to the folder and the branch in ``settings``."""
    from watchroom.history.git import SealBranch

    folder, repository, name = settings.publication
    sealing.publish_to(folder, SealBranch(repository, name) if repository else None)


def publish_later(workspace: Workspace, language: Language) -> None:
    """Publish seals of ``workspace`` to the places in the settings, in the process that keeps the workspace.

    The settings are read when the first seal is due, because most processes end before. Errors in the
    settings are logged.
    """

    def prepare(sealing: Sealing) -> None:
        from watchroom_tui.services.settings import read_settings, settings_path

        try:
            settings = read_settings(settings_path(), load_texts(language))
            publish_as_set(sealing, settings)
            if settings.webhook:
                from watchroom.history.seal.webhook import open_webhook

                sealing.publish_on(open_webhook(settings.webhook, os.environ, catalogue(language)))
        except WrongUsage as error:
            _log.warning("no seal is published: %s", error)
        except DeliveryUnusable as error:
            _log.warning("no seal is posted: %s", error.message(language))

    workspace.prepare_sealing = prepare


def deliver_later(workspace: Workspace, language: Language) -> None:
    """Publish seals of ``workspace`` (`publish_later`) and send its alerts, both in ``language``."""
    from watchroom_cli.plain.sentences import alert_wording

    publish_later(workspace, language)
    workspace.send_alerts(alert_wording(language))
