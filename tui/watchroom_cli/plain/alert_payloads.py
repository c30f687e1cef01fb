"""Alerts as those take them to whom they are sent. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from watchroom.features.alerts.rows import AlertItem, AlertMessage
from watchroom.features.alerts.rules import TargetType
from watchroom.features.overview.model import Need
from watchroom.model import Json, timestamp
from watchroom.texts import Catalogue
from watchroom_tui.formatters.local_time import zoned_time
from watchroom_tui.presentation.sanitize import sanitize

from watchroom_cli.plain.sentences import end_sentence, need_sentence, shorten

MOST_LINES: Final = 20
"""So many needs are told of in the text of a message; the others are counted."""
_NTFY_BYTES: Final = 3800
"""A server of ntfy makes an attachment of a longer message."""


class AlertText(NamedTuple):
    """What people read of a message: a ``title``, and a ``body`` of lines."""

    title: str
    body: str


def alert_item(need: Need, texts: Catalogue) -> AlertItem:
    """``need`` as an alert tells of it."""
    kind, key, since = need.identity
    return AlertItem(kind, key, since, need_sentence(need, texts), sanitize(need.agent), need.deadline)


def alert_summary(message: AlertMessage, texts: Catalogue) -> str:
    """How many needs ``message`` is about, and which one if it is one; in a line, without a full stop."""
    told = _told(message)
    if len(told) == 1:
        return texts(f"watch.alert.{message.event}_one", need=told[0].text)
    return texts(f"watch.alert.{message.event}", count=len(told))


def alert_text(message: AlertMessage, place: str, link: str, texts: Catalogue) -> AlertText:
    """``message`` as people read it, about the workspace ``place``; ``link`` leads to its dashboard, empty
    where none is served."""
    told = _told(message)
    lines = [_line(item, message, texts) for item in told[:MOST_LINES]]
    if len(told) > MOST_LINES:
        lines.append(texts("watch.alert.more", count=len(told) - MOST_LINES))
    if link:
        lines.append(link)
    number = "one" if len(told) == 1 else "some"
    title = texts(f"watch.alert.title.{message.event}_{number}", place=shorten(place, 80), count=len(told))
    return AlertText(title, "\n".join(lines))


def _line(item: AlertItem, message: AlertMessage, texts: Catalogue) -> str:
    """What ``item`` is about, and until when it can be dealt with."""
    said = end_sentence(item.text, texts)
    if item.deadline is None or message.event != "new":
        return said
    # It is read elsewhere, and later: how much is left would be wrong by then.
    return texts("watch.alert.with_deadline", need=said, time=zoned_time(item.deadline))


def _told(message: AlertMessage) -> list[AlertItem]:
    """The items, without those of one matter that came under two kinds."""
    found = {(item.since or item.key): item for item in message.items}
    return list(found.values())


def alert_payload(
    target: TargetType, message: AlertMessage, text: AlertText, place: str, link: str, topic: str = ""
) -> dict[str, Json]:
    """The JSON object that ``target`` takes for ``message``, which people read as ``text``; ``topic`` is that
    of ntfy."""
    if target == "slack":
        # Nothing that an agent wrote is a link under another name.
        whole = without_mentions(f"{text.title}\n{text.body}")
        shown = whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": shown, "mrkdwn": False}
    if target == "ntfy":
        clipped = text.body.encode()[:_NTFY_BYTES].decode(errors="ignore")
        is_new = message.event == "new"
        sent: dict[str, Json] = {
            "topic": topic,
            "title": text.title,
            "message": clipped,
            "priority": 4 if is_new else 2,
            "tags": ["warning" if is_new else "white_check_mark"],
        }
        return {**sent, "click": link} if link else sent
    needs: list[Json] = [
        {
            "id": item.id,
            "kind": item.kind,
            "agent": item.agent,
            "row": item.since,
            "text": item.text,
            "deadline": None if item.deadline is None else timestamp(item.deadline),
        }
        for item in message.items
    ]
    return {
        "id": message.id,
        "event": message.event,
        "workspace": sanitize(place),
        "title": text.title,
        "text": text.body,
        "link": link,
        "needs": needs,
    }


def without_mentions(text: str) -> str:
    """``text`` in which no ``@everyone`` calls the people of a chat: an agent may have written it."""
    return text.replace("@", "@\N{ZERO WIDTH SPACE}")


def split_topic(url: str) -> tuple[str, str]:
    """The address of the server and the topic that ``url``, that of a topic of ntfy, names; the topic is
    empty where it names none."""
    parts = urlsplit(url)
    above, _, topic = parts.path.rstrip("/").rpartition("/")
    return urlunsplit((parts.scheme, parts.netloc, above or "/", "", "")), topic
