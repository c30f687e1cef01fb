"""Alerts as texts, and as the payloads of their targets. Pure."""

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

MAX_NEEDS: Final = 20
"""Max needs listed in a message. The others are counted."""
_MAX_NTFY_BYTES: Final = 3800
"""Max bytes of a message. ntfy turns longer messages into attachments."""


class AlertText(NamedTuple):
    """The text of a message for people: a ``title``, and a ``body`` of lines."""

    title: str
    body: str


def alert_item(need: Need, texts: Catalogue) -> AlertItem:
    """Return ``need`` as an item of an alert."""
    kind, key, since = need.identity
    return AlertItem(kind, key, since, need_sentence(need, texts), sanitize(need.agent), need.deadline)


def alert_summary(message: AlertMessage, texts: Catalogue) -> str:
    """Return one line that counts the needs of ``message``, or names its only need. Without a full stop."""
    items = _distinct_items(message)
    if len(items) == 1:
        return texts(f"watch.alert.{message.event}_one", need=items[0].text)
    return texts(f"watch.alert.{message.event}", count=len(items))


def alert_text(message: AlertMessage, place: str, link: str, texts: Catalogue) -> AlertText:
    """Return the text of ``message`` for people.

    - ``place``: the workspace's name.
    - ``link``: the address of its dashboard, empty without one.
    """
    items = _distinct_items(message)
    lines = [_line(item, message, texts) for item in items[:MAX_NEEDS]]
    if len(items) > MAX_NEEDS:
        lines.append(texts("watch.alert.more", count=len(items) - MAX_NEEDS))
    if link:
        lines.append(link)
    number = "one" if len(items) == 1 else "some"
    title = texts(f"watch.alert.title.{message.event}_{number}", place=shorten(place, 80), count=len(items))
    return AlertText(title, "\n".join(lines))


def _line(item: AlertItem, message: AlertMessage, texts: Catalogue) -> str:
    """Return the sentence about ``item``, with its deadline."""
    sentence = end_sentence(item.text, texts)
    if item.deadline is None or message.event != "new":
        return sentence
    # The message is read later, so it names the time and not the time left.
    return texts("watch.alert.with_deadline", need=sentence, time=zoned_time(item.deadline))


def _distinct_items(message: AlertMessage) -> list[AlertItem]:
    """Return the items. Of items about the same row, only the last is kept."""
    found = {(item.since or item.key): item for item in message.items}
    return list(found.values())


def alert_payload(
    target: TargetType, message: AlertMessage, text: AlertText, place: str, link: str, topic: str = ""
) -> dict[str, Json]:
    """Return the JSON object that ``target`` accepts for ``message``.

    - ``text``: the message's text for people.
    - ``place``: the workspace's name.
    - ``link``: the address of its dashboard, empty without one.
    - ``topic``: the topic of ntfy.
    """
    if target == "slack":
        # Escaped, so that an agent's text cannot contain a link with another label.
        whole = without_mentions(f"{text.title}\n{text.body}")
        shown = whole.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return {"text": shown, "mrkdwn": False}
    if target == "ntfy":
        clipped = text.body.encode()[:_MAX_NTFY_BYTES].decode(errors="ignore")
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
    """Return ``text`` with mentions such as ``@everyone`` disabled, because an agent may have written it."""
    return text.replace("@", "@\N{ZERO WIDTH SPACE}")


def split_topic(url: str) -> tuple[str, str]:
    """Split the ``url`` of an ntfy topic into the server's address and the topic. The topic is empty if the
    URL has none."""
    parts = urlsplit(url)
    above, _, topic = parts.path.rstrip("/").rpartition("/")
    return urlunsplit((parts.scheme, parts.netloc, above or "/", "", "")), topic
