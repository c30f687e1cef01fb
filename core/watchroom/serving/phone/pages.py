"""`PhonePages`: checks links, shows requests, and records a person's answers."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from watchroom.errors import JournalDamaged, JournalError, RequestClosed, RequestNotFound
from watchroom.features.alerts.links import APPROVE_PATH, PAGE_PATH
from watchroom.features.calls.reads import RequestDetails, find_request, read_request
from watchroom.features.links.rows import Link
from watchroom.features.links.rules import LinkRefusal, WebSettings
from watchroom.features.links.service import FoundLink
from watchroom.features.requests.rows import Request, request_state
from watchroom.features.requests.service import find_request_end
from watchroom.features.trees.place import display_name
from watchroom.model import ANSWER, HUMAN_PREFIX, Json, utc_datetime
from watchroom.serving.phone.content import ShownRequest, show_request
from watchroom.serving.phone.limits import MAX_PER_LINK, MAX_UNKNOWN, RateLimiter, RefusalRecord
from watchroom.serving.phone.page import (
    MAX_ANSWER_CHARACTERS,
    MAX_REASON_CHARACTERS,
    SECURITY_POLICY,
    message_page,
    request_page,
)
from watchroom.texts import Language, catalogue
from watchroom.workspace import Workspace

HEADERS: Final = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Security-Policy", SECURITY_POLICY),
    ("Cache-Control", "no-store"),
    # With ``no-referrer``, browsers would send the form without its origin.
    ("Referrer-Policy", "same-origin"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("X-Robots-Tag", "noindex, nofollow"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_FIELDS: Final = 100
_STATUSES: Final[Mapping[LinkRefusal, int]] = {
    "link_unknown": 404,
    "link_used": 410,
    "link_expired": 410,
    "link_person": 403,
    "link_origin": 403,
    "link_changed": 409,
    "link_signed": 403,
    "link_closed": 409,
}
_DECISIONS: Final[Mapping[str, tuple[str, str]]] = {
    "approve": ("approve", "reject"),
    "prompt": ("send", "decline"),
    "select": ("send", "decline"),
}
"""The buttons by the kind of the request: the answer, and the refusal to give it."""


class PhoneRequest(NamedTuple):
    """A request for a page. ``headers``: names in lower case, and values."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        """Return the values of the header ``name``."""
        return [value for each, value in self.headers if each == name]


class PhoneResponse(NamedTuple):
    """A page with its HTTP ``status``. ``headers``: in addition to `HEADERS`."""

    status: int
    page: str
    headers: tuple[tuple[str, str], ...] = ()


class _Answer(NamedTuple):
    """A person's answer: the ``decision`` in one word, and the ``fields`` of the tool that answers."""

    decision: str
    fields: Mapping[str, Json]


class PhonePages:
    """The pages for the requests in ``workspace``, in ``language``. Thread-safe. Call `close` at the end.

    A page changes nothing. Only the POST request of its form answers, and uses the link up.
    """

    def __init__(self, workspace: Workspace, language: Language) -> None:
        self._workspace = workspace
        self._language = language
        self._texts = catalogue(language)
        self._place = display_name(workspace.root)
        self._secret = secrets.token_bytes(32)
        self._limit = RateLimiter()
        self._refusals = RefusalRecord(workspace.links)

    def close(self) -> None:
        """Record the refusals that have no row yet. Raise `JournalError`."""
        self._refusals.close()

    def respond(self, request: PhoneRequest) -> PhoneResponse:
        """Return the response to ``request``."""
        settings = self._workspace.config.web
        host = [value.lower() for value in request.all("host")]
        if not settings.public_url or host != [settings.host]:
            return self._message(421, "phone.elsewhere")
        path = next((each for each in (PAGE_PATH, APPROVE_PATH) if request.path.startswith(each)), None)
        if path is None:
            return self._message(404, "phone.nothing")
        allowed = ("GET", "HEAD", "POST") if path == PAGE_PATH else ("POST",)
        if request.method not in allowed:
            return self._message(405, "phone.nothing")._replace(headers=(("Allow", ", ".join(allowed)),))
        try:
            return self._respond(request, settings, path, request.path.removeprefix(path))
        except JournalError:
            return self._message(503, "phone.unavailable")

    def _respond(self, request: PhoneRequest, settings: WebSettings, path: str, token: str) -> PhoneResponse:
        found = self._workspace.links.find(token)
        link = found.link
        if link is None or (link.action == "page") != (path == PAGE_PATH):
            # Links to unknown pages are limited apart, so that they cannot lock a person out.
            if not self._limit.admits("unknown", MAX_UNKNOWN):
                return self._too_many()
            return self._refuse("link_unknown", None)
        if not self._limit.admits(found.path, MAX_PER_LINK):
            return self._too_many()
        if found.refusal == "link_used":
            return self._refuse("link_used", link, self._used_lines(found, link))
        if found.refusal is not None:
            return self._refuse(found.refusal, link)
        if path == APPROVE_PATH:
            return self._approve(request, found, link, token)
        if request.method != "POST":
            return self._show(link, token)
        if not _has_origin(request, settings):
            return self._refuse("link_origin", link)
        return self._answer(request, found, link, token)

    def _show(self, link: Link, token: str) -> PhoneResponse:
        if not link.is_request:
            lines = [link.text, self._texts("phone.decide_elsewhere")]
            return self._message(200, "phone.need", lines, self._place)
        details = self._read(link)
        if details is None:
            return self._refuse("link_unknown", link)
        if details.asked.ended is not None:
            return self._message(200, "phone.closed", self._ended_lines(link), self._place)
        shown = show_request(details, self._texts)
        if self._needs_signature():
            note = self._texts("phone.refused.link_signed", request=link.row)
            return self._page(200, shown, link, None, note)
        return self._page(200, shown, link, self._form_token(token, details))

    def _answer(self, request: PhoneRequest, found: FoundLink, link: Link, token: str) -> PhoneResponse:
        """Answer the request of ``link`` with the form in ``request``."""
        fields = _parse_form(request)
        if fields is None:
            return self._message(400, "phone.malformed")
        if not link.is_request:
            lines = [link.text, self._texts("phone.decide_elsewhere")]
            return self._message(405, "phone.need", lines, self._place)
        details, refusal = self._check(link, token)
        if details is None or refusal is not None:
            return refusal or self._refuse("link_unknown", link)
        expected = self._form_token(token, details)
        if not hmac.compare_digest(fields.get("form", [""])[0].encode(), expected.encode()):
            return self._refuse("link_changed", link)
        answer = _parse_answer(details.request, fields)
        if answer is None:
            note = self._texts("phone.no_answer")
            return self._page(422, show_request(details, self._texts), link, expected, note)
        return self._record(found, link, token, answer)

    def _approve(self, request: PhoneRequest, found: FoundLink, link: Link, token: str) -> PhoneResponse:
        """Approve the request of ``link`` exactly as it was asked. For buttons of apps, not of pages."""
        if request.all("origin") or request.all("sec-fetch-site"):
            return self._refuse("link_origin", link)
        details, refusal = self._check(link, token)
        if details is None or refusal is not None:
            return refusal or self._refuse("link_unknown", link)
        is_switched_on = self._workspace.config.web.approve_button
        if details.request.kind != "approve" or details.outdated or not is_switched_on:
            return self._refuse("link_changed", link)
        return self._record(found, link, token, _Answer("approve", {"approved": True}))

    def _check(self, link: Link, token: str) -> tuple[RequestDetails | None, PhoneResponse | None]:
        """Return the details of the request of ``link``, and the refusal if it cannot be answered here."""
        details = self._read(link)
        if details is None:
            return None, None
        if details.asked.ended is not None:
            refusal = self._refuse_used(link, token)
            return details, refusal or self._refuse("link_closed", link, self._ended_lines(link))
        if self._needs_signature():
            return details, self._refuse("link_signed", link)
        return details, None

    def _record(self, found: FoundLink, link: Link, token: str, answer: _Answer) -> PhoneResponse:
        """Answer the request of ``link`` as its person. The row of the answer uses the link up."""
        toolbox = self._workspace.tools_for_human(link.person, language=self._language)
        fields = {"request": link.row, **answer.fields}
        result = toolbox.dispatch_tool_call(ANSWER, fields, call=found.path)
        if result["success"]:
            return self._message(200, f"phone.done.{answer.decision}", place=self._place)
        if result["error"] == RequestClosed.code and (refusal := self._refuse_used(link, token)) is not None:
            return refusal
        lines = [str(result.get("message", "")), str(result.get("suggestion", ""))]
        return self._message(409, "phone.failed", lines, self._place)

    def _refuse_used(self, link: Link, token: str) -> PhoneResponse | None:
        """Refuse ``link`` if another answer has used it up in the meantime."""
        found = self._workspace.links.find(token)
        if found.refusal != "link_used":
            return None
        return self._refuse(found.refusal, link, self._used_lines(found, link))

    def _read(self, link: Link) -> RequestDetails | None:
        """Return the request of ``link``, None if it cannot be read."""
        journal = self._workspace.journal
        try:
            self._workspace.requests.find(link.row)
            asked = find_request(journal, link.row)
            return None if asked is None else read_request(journal, asked)
        except (RequestNotFound, JournalDamaged):
            return None

    def _needs_signature(self) -> bool:
        return self._workspace.signing.needs_key(ANSWER)

    def _form_token(self, token: str, details: RequestDetails) -> str:
        """Return a checksum of the link and of everything that its page shows now."""
        changes = [change.checksum if change else None for change in details.proposals]
        asked = details.asked.row
        facts = json.dumps([token, asked.seq, asked.sha256, changes, sorted(details.outdated)])
        return hmac.new(self._secret, facts.encode(), "sha256").hexdigest()

    def _used_lines(self, found: FoundLink, link: Link) -> list[str]:
        at = utc_datetime(found.used.time).astimezone().isoformat(" ", "seconds") if found.used else "-"
        lines = [self._texts("phone.used_at", time=at)]
        return [*lines, *self._ended_lines(link)] if link.is_request else lines

    def _ended_lines(self, link: Link) -> list[str]:
        """Return the outcome of the request of ``link``."""
        row = self._workspace.journal.row(link.row)
        if row is None:
            return []
        ended = find_request_end(self._workspace.journal, self._workspace.people, row.path)
        state = request_state(ended)
        by = ended.actor.removeprefix(HUMAN_PREFIX) if ended else "-"
        return [self._texts(f"phone.state.{state}", request=link.row, by=by)]

    def _refuse(self, reason: LinkRefusal, link: Link | None, lines: Sequence[str] = ()) -> PhoneResponse:
        self._refusals.add(reason, link)
        number = link.row if link is not None else "-"
        text = self._texts(f"phone.refused.{reason}", request=number)
        place = self._place if link is not None else ""
        return self._message(_STATUSES[reason], "phone.refused_title", [text, *lines], place)

    def _too_many(self) -> PhoneResponse:
        return self._message(429, "phone.too_many")._replace(headers=(("Retry-After", "60"),))

    def _message(self, status: int, key: str, lines: Sequence[str] = (), place: str = "") -> PhoneResponse:
        """Return a page with a message. ``place``: the workspace's name, only for those with one of its
        links."""
        return PhoneResponse(status, message_page(place, self._texts(key), lines, self._texts))

    def _page(
        self, status: int, shown: ShownRequest, link: Link, form: str | None, note: str = ""
    ) -> PhoneResponse:
        return PhoneResponse(status, request_page(self._place, shown, link.person, form, note, self._texts))


def _has_origin(request: PhoneRequest, settings: WebSettings) -> bool:
    """Return whether ``request`` comes from a page of the public address."""
    sites = request.all("sec-fetch-site")
    is_own_site = sites in ([], ["same-origin"])
    return is_own_site and request.all("origin") == [settings.public_url]


def _parse_form(request: PhoneRequest) -> Mapping[str, list[str]] | None:
    """Return the fields of the form in ``request``, None if it is malformed."""
    kinds = [value.partition(";")[0].strip().lower() for value in request.all("content-type")]
    if kinds != [_FORM_TYPE]:
        return None
    try:
        text = request.body.decode("ascii")
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        return None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        # Browsers end the lines of a field with CR LF.
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return fields


def _parse_answer(request: Request, fields: Mapping[str, list[str]]) -> _Answer | None:
    """Return the answer to ``request`` in the ``fields`` of its form, None if it is invalid."""
    (decision,) = fields.get("decision", [""])[:1]
    yes, no = _DECISIONS[request.kind]
    reason, text = (fields.get(name, [""])[0].strip() for name in ("reason", "text"))
    if len(reason) > MAX_REASON_CHARACTERS or len(text) > MAX_ANSWER_CHARACTERS or decision not in (yes, no):
        return None
    if request.kind == "approve":
        return _Answer(decision, {"approved": decision == yes, **({"reason": reason} if reason else {})})
    if decision == no:
        return _Answer(no, {"approved": False, "reason": text[:MAX_REASON_CHARACTERS]})
    if request.kind == "prompt":
        return _Answer(yes, {"text": text}) if text else None
    chosen = fields.get("choice", [])
    numbers = [int(each) for each in chosen if each.isascii() and each.isdigit() and len(each) < 5]
    if not chosen or len(numbers) < len(chosen) or max(numbers) >= len(request.options):
        return None
    if len({*numbers}) < len(numbers) or (len(numbers) > 1 and not request.multi):
        return None
    return _Answer(yes, {"values": [request.options[each].value for each in numbers]})
