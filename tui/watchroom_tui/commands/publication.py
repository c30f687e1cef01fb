"""Has checkpoints published where the settings of this user say."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from watchroom.texts import Catalogue

from watchroom_tui.usage import WrongUsage

if TYPE_CHECKING:
    from watchroom.transparency import Sealing
    from watchroom.workspace import Workspace

    from watchroom_tui.plain.seal_webhook import SealWebhook
    from watchroom_tui.settings import Settings

_log = logging.getLogger("watchroom")


def publish_as_set(sealing: Sealing, settings: Settings, webhook: SealWebhook | None = None) -> None:
    """Have what ``sealing`` seals kept in the folder and on the branch of ``settings``, and given to
    ``webhook``."""
    from watchroom.git import SealBranch

    folder, repository, name = settings.publication
    sealing.publish_to(folder, SealBranch(repository, name) if repository else None)
    if webhook is not None:
        sealing.publish_on(webhook)


def publish_later(workspace: Workspace, texts: Catalogue) -> None:
    """Have checkpoints of ``workspace`` kept in the folder and on the branch of the settings, which are read
    when the first checkpoint is due: most processes are over by then. Settings that cannot be read are
    logged. Nothing is posted: each process would do it."""

    def prepare(sealing: Sealing) -> None:
        from watchroom_tui.settings import read_settings, settings_path

        try:
            publish_as_set(sealing, read_settings(settings_path(), texts))
        except WrongUsage as error:
            _log.warning("no checkpoint is published: %s", error)

    workspace.prepare_sealing = prepare
