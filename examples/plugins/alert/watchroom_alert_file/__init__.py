"""Alerts as lines of JSON in a file, for a program that follows it."""

import json

from watchroom.features.alerts.plugins import PluginAlert


def append_line(alert: PluginAlert) -> None:
    """Append ``alert`` to the file whose path is the target's ``url``. If this fails, it is called again."""
    line = json.dumps({"id": alert.id, "title": alert.title, "text": alert.text}, ensure_ascii=False)
    with open(alert.url, "a", encoding="utf-8") as file:
        file.write(f"{line}\n")
