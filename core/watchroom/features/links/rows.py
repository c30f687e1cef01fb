"""The content of a link's row. Pure."""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from watchroom.model import Json, parse_object
from watchroom.validation import sha256

LinkAction: TypeAlias = Literal["page", "approve"]
"""What a link leads to: the page of its need, or the approval of its request without a page."""
ACTIONS: Final[tuple[LinkAction, ...]] = get_args(LinkAction)
ISSUE: Final = "issue_link"
"""The tool of the first version of a link, by ``system``."""
REFUSE: Final = "refuse_link"
"""The tool of notes about refused links."""
PREFIX: Final = "link/"
"""The beginning of a link's path in the zone ``workspace``. The checksum of its token follows."""


class Link(NamedTuple):
    """A link.

    - ``kind``: the kind of its need.
    - ``row``: the row that opened the need. For requests this is the request's number.
    - ``person``: the name of the person who got it.
    - ``enrolment``: the newest row of the person's enrolment when the link was issued, 0 for none.
    - ``expires``: in nanoseconds since the epoch.
    - ``action``: what it leads to.
    - ``text``: the sentence about the need.
    """

    kind: str
    row: int
    person: str
    enrolment: int
    expires: int
    action: LinkAction
    text: str

    @property
    def is_request(self) -> bool:
        """Whether the need is a request, which the link can answer."""
        return self.kind == "request"


def link_path(token: str) -> str:
    """Return the path of the link with ``token``."""
    return PREFIX + sha256(token.encode())


def dump_link(link: Link) -> str:
    """Return ``link`` as JSON, the content of its row. The reverse of `parse_link`."""
    return json.dumps(link._asdict(), ensure_ascii=False)


def parse_link(text: str) -> Link | None:
    """Return the link in ``text``, None if it is invalid."""
    fields = parse_object(text) or {}
    numbers = [_number(fields.get(name)) for name in ("row", "enrolment", "expires")]
    texts = [fields.get(name) for name in ("kind", "person", "text")]
    action = next((each for each in ACTIONS if each == fields.get("action")), None)
    if None in numbers or action is None or not all(isinstance(each, str) for each in texts):
        return None
    kind, person, text = (str(each) for each in texts)
    row, enrolment, expires = (each or 0 for each in numbers)
    return Link(kind, row, person, enrolment, expires, action, text)


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
