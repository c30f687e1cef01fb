"""Answers from a phone: links in alerts, and the pages to which they lead, served by the running command."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from calls import ok
from people.conftest import DANA, person
from receiver import PATIENCE, Posted, Receiver, receiving
from refusing import refusing
from watchroom import Workspace
from watchroom.features.links.rows import ISSUE, REFUSE, LinkAction, link_path, parse_link
from watchroom.features.links.service import LinkedNeed
from watchroom.features.requests.rows import DIFFERENCE, Option, PendingCall, Request
from watchroom.kernel.call_context import CallContext
from watchroom.model import SYSTEM, Row, Write
from watchroom.serving.phone.content import MAX_LINES
from watchroom.serving.phone.limits import MAX_ROWS
from watchroom.serving.phone.server import MAX_BODY_BYTES, READ_SECONDS
from web.browsing import server

pytestmark = pytest.mark.slow(4)

HOST = "team.example.org"
ORIGIN = f"https://{HOST}"
CONFIG = f"""
[alerts]
digest_seconds = 0
[alerts.targets.hook]
type = "webhook"
url = "$WATCHROOM_HOOK"
[alerts.targets.phone]
type = "ntfy"
url = "$WATCHROOM_NTFY"
[alerts.targets.chat]
type = "slack"
url = "$WATCHROOM_CHAT"
[web]
public_url = "{ORIGIN}"
person = "dana"
targets = ["hook", "phone"]
approve_button = true
"""
PLAN = PendingCall("c1", "collab_write", '{"filepath": "plan.md", "content": "two\\n", "message": "m"}')


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def configure(workspace: Workspace, text: str = CONFIG) -> None:
    path = Path(workspace.root) / ".watchroom/config.toml"
    path.write_text(f"{path.read_text()}\n{text}")
    workspace.scan()
    assert workspace.registry.find_invalid() is None


class Phone:
    """The pages of a workspace, as a browser behind a proxy of the person's own sees them."""

    def __init__(self, workspace: Workspace, port: int) -> None:
        self.workspace = workspace
        self.port = port

    def ask(self, request: Request | None = None, name: str = "1") -> int:
        asked = request or Request("approve", calls=(PLAN,))
        return self.workspace.requests.ask(CallContext("alice"), f"alice/mcp/{name}", asked).seq

    def issue(self, number: int, action: LinkAction = "page", *, deadline: int | None = None) -> str:
        need = LinkedNeed("request", number, "alice asks", deadline)
        (token,) = self.workspace.links.issue([(need, action)])
        return token

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Host": HOST, **options.pop("headers", {})}
        url = f"http://127.0.0.1:{self.port}{path}"
        # HTTP needs no certificates, which take 25 ms to load for each request.
        return httpx.request(method, url, headers=headers, timeout=PATIENCE, verify=False, **options)

    def open(self, token: str) -> httpx.Response:
        return self.send("GET", f"/need/{token}")

    def form(self, token: str) -> str:
        found = re.search(r'name="form" value="([0-9a-f]+)"', self.open(token).text)
        assert found
        return found[1]

    def answer(
        self,
        token: str,
        decision: str,
        form: str | None = None,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        sent = {"form": self.form(token) if form is None else form, "decision": decision, **fields}
        given = {"Origin": ORIGIN} if headers is None else headers
        return self.send("POST", f"/need/{token}", data=sent, headers=given)

    def rows(self, *tools: str) -> list[Row]:
        return [row for row in self.workspace.journal.rows(limit=10_000) if row.tool in tools]

    @property
    def refusals(self) -> list[str]:
        return [row.error for row in self.rows(REFUSE)]

    def outcome(self, number: int) -> str | None:
        row = self.workspace.journal.row(number)
        assert row is not None
        end = self.workspace.requests.find_end(row.path)
        return None if end is None else f"{end.actor} {end.detail['outcome']}"


@contextmanager
def serving(workspace: Workspace) -> Iterator[Phone]:
    port = free_port()
    with server(workspace.root, "--phone-port", str(port)):
        yield Phone(workspace, port)


@pytest.fixture
def phone(root: Path) -> Iterator[Phone]:
    with Workspace.open(root, agents=["alice"]) as workspace:
        written = {"filepath": "plan.md", "content": "one\n", "message": "m", "expected_version": 0}
        ok(workspace.tools("alice"), "collab_write", **written)
        configure(workspace)
        with serving(workspace) as opened:
            yield opened


def text_of(response: httpx.Response) -> str:
    return unescape(re.sub(r"<[^>]*>", "\n", response.text.partition("</style>")[2]))


def test_a_request_is_approved_in_two_touches(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    page = phone.open(token)
    assert page.status_code == 200
    shown = text_of(page)
    for each in (
        "alice asks for approval",
        "collab_write plan.md",
        "-one",
        "+two",
        "Approve",
        "Reject",
        "dana",
    ):
        assert each in shown
    done = phone.answer(token, "approve")
    assert (done.status_code, phone.outcome(number)) == (200, "human:dana approved")
    assert "Approved" in text_of(done)
    (issued,) = phone.rows(ISSUE)
    assert (issued.actor, issued.detail["row"], issued.detail["person"]) == (SYSTEM, number, "dana")
    (answered,) = phone.rows("answer_request")
    assert (answered.actor, answered.detail["request"]) == ("human:dana", number)
    assert answered.detail["call"] == issued.path
    journal = phone.workspace.journal
    contents = [journal.content(row.seq) or "" for row in journal.rows(limit=10_000)]
    assert token not in str(journal.rows(limit=10_000)) + str(contents)


def test_a_request_is_rejected_with_a_reason(phone: Phone) -> None:
    number = phone.ask()
    assert phone.answer(phone.issue(number), "reject", reason="Not\r\nnow").status_code == 200
    assert phone.outcome(number) == "human:dana rejected"
    outcome = phone.workspace.requests.ended("alice/mcp/1")
    assert outcome is not None
    assert outcome.answer is not None
    assert outcome.answer.decisions[0].reason == "Not\nnow"


def test_a_question_and_a_choice_are_answered(phone: Phone) -> None:
    question = phone.ask(Request("prompt", "Which month?"), "q")
    token = phone.issue(question)
    empty = phone.answer(token, "send", text="  ")
    assert (empty.status_code, phone.outcome(question)) == (422, None)
    assert "write an answer" in text_of(empty)
    assert phone.answer(token, "send", text="May").status_code == 200
    assert phone.outcome(question) == "human:dana replied"
    options = (Option("In May", "may\n5"), Option("In June", "june"))
    choice = phone.ask(Request("select", "When?", options=options), "c")
    token = phone.issue(choice)
    for wrong in ({}, {"choice": "2"}, {"choice": ["0", "1"]}, {"choice": "-1"}, {"choice": ["0", "0"]}):
        assert phone.answer(token, "send", **wrong).status_code == 422
    assert phone.answer(token, "send", choice="0").status_code == 200
    outcome = phone.workspace.requests.ended("alice/mcp/c")
    assert outcome is not None
    assert outcome.answer is not None
    assert outcome.answer.values == ("may\n5",)
    declined = phone.ask(Request("prompt", "Which year?"), "d")
    assert phone.answer(phone.issue(declined), "decline", text="Ask eve").status_code == 200
    assert phone.outcome(declined) == "human:dana rejected"


def test_a_choice_with_many_options_says_how_many_are_not_shown(phone: Phone) -> None:
    options = tuple(Option(f"Day {number}", str(number)) for number in range(53))
    number = phone.ask(Request("select", "When?", options=options), "c")
    page = text_of(phone.open(phone.issue(number)))
    assert "Day 49" in page
    assert "Day 50" not in page
    left = (
        f"3 more options are not shown here. To choose one of them, answer request {number} in the dashboard"
    )
    assert left in page
    fewer = phone.ask(Request("select", "When?", options=options[:50]), "d")
    assert "more options" not in text_of(phone.open(phone.issue(fewer)))


def test_showing_a_page_answers_nothing_and_uses_nothing_up(phone: Phone) -> None:
    number = phone.ask()
    token, button = phone.issue(number), phone.issue(number, "approve")
    before = phone.workspace.journal.last_seq()
    for _ in range(3):
        assert phone.open(token).status_code == 200
        head = phone.send("HEAD", f"/need/{token}")
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["Content-Length"]) > 1000
    for method in ("GET", "HEAD", "PUT", "OPTIONS"):
        assert phone.send(method, f"/approve/{button}").status_code == 405
    assert phone.send("DELETE", f"/need/{token}").status_code == 405
    assert phone.workspace.journal.last_seq() == before
    assert phone.answer(token, "approve").status_code == 200


def test_forged_links_are_refused_with_a_row(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    for forged in ("x", "A" * 43, token[:-1], f"{token}A", token.swapcase(), "%2e%2e", ""):
        page = phone.open(forged)
        assert page.status_code == 404, forged
        assert "not a link of this workspace" in text_of(page)
        assert "alice" not in page.text
        assert "team" not in text_of(page)
    assert set(phone.refusals) == {"link_unknown"}
    assert len(phone.refusals) == 7
    assert phone.answer("A" * 43, "approve", form="0" * 64).status_code == 404
    assert phone.outcome(number) is None


def test_a_link_that_an_agent_or_a_person_wrote_is_no_link(phone: Phone) -> None:
    number = phone.ask()
    path = link_path(phone.issue(number))
    issued = phone.workspace.journal.version("workspace", path, 1)
    assert issued is not None
    content = phone.workspace.journal.content(issued.seq) or ""
    assert parse_link(content) is not None
    token = "B" * 43
    planted = Write("alice", ISSUE, "workspace", link_path(token), content, expected=0)
    phone.workspace.journal.append([planted])
    assert phone.open(token).status_code == 404


def test_a_link_works_once(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    form = phone.form(token)
    assert phone.answer(token, "approve", form).status_code == 200
    again = phone.answer(token, "reject", form)
    assert (again.status_code, phone.outcome(number)) == (410, "human:dana approved")
    assert "answered by dana" in text_of(again)
    assert phone.open(token).status_code == 410
    assert phone.refusals == ["link_used", "link_used"]
    refused = phone.rows(REFUSE)[0]
    assert (refused.actor, refused.outcome, refused.detail["row"]) == (SYSTEM, "failed", number)


def test_a_link_is_not_used_up_by_an_answer_that_the_journal_refuses(phone: Phone) -> None:
    number = phone.ask()
    token, button = phone.issue(number), phone.issue(number, "approve")
    with refusing(phone.workspace.root, "NEW.tool = 'answer_request'"):
        refused = phone.answer(token, "reject")
        assert (refused.status_code, phone.outcome(number)) == (409, None)
        assert "disk is full" in text_of(refused)
        assert phone.send("POST", f"/approve/{button}").status_code == 409
    assert phone.open(token).status_code == 200
    assert phone.answer(token, "approve").status_code == 200
    assert phone.outcome(number) == "human:dana approved"
    assert phone.open(token).status_code == 410


def test_a_link_that_an_earlier_version_used_up_stays_used_up(phone: Phone) -> None:
    token = phone.issue(phone.ask())
    used = Write("human:dana", "use_link", "workspace", link_path(token), "", expected=1)
    phone.workspace.journal.append([used])
    assert phone.open(token).status_code == 410


def test_of_two_answers_at_once_one_counts(phone: Phone) -> None:
    for round_ in range(5):
        number = phone.ask(name=f"r{round_}")
        token = phone.issue(number)
        form = phone.form(token)
        with ThreadPoolExecutor(8) as pool:
            sent = [pool.submit(phone.answer, token, each, form) for each in ("approve", "reject") * 4]
        statuses = sorted(each.result().status_code for each in sent)
        assert statuses == [200, *[410] * 7]
        answers = [row for row in phone.rows("answer_request") if row.path == f"alice/mcp/r{round_}"]
        assert [row.outcome for row in answers].count("ok") == 1


def test_an_expired_link_is_refused(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number, deadline=phone.workspace.journal.now() - 1)
    page = phone.open(token)
    assert (page.status_code, phone.refusals) == (410, ["link_expired"])
    assert "expired" in text_of(page)
    issued = phone.rows(ISSUE)[0]
    longest = phone.issue(number)
    expires = phone.rows(ISSUE)[1].detail["expires"]
    assert isinstance(expires, int)
    assert expires <= issued.time + 24 * 3600 * 10**9 + PATIENCE * 10**9
    assert phone.open(longest).status_code == 200


def test_the_form_of_another_request_is_refused(phone: Phone) -> None:
    one, other = phone.ask(name="1"), phone.ask(Request("approve", calls=(PLAN,)), "2")
    mine, theirs = phone.issue(one), phone.issue(other)
    for form in (phone.form(theirs), "", "0" * 64, "é"):
        assert phone.answer(mine, "approve", form).status_code == 409
    assert phone.refusals == ["link_changed"] * 4
    assert (phone.outcome(one), phone.outcome(other)) == (None, None)
    assert phone.answer(mine, "approve").status_code == 200
    assert (phone.outcome(one), phone.outcome(other)) == ("human:dana approved", None)


def test_only_what_the_page_showed_is_answered(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    form = phone.form(token)
    written = {"filepath": "plan.md", "content": "other\n", "message": "m", "expected_version": 1}
    ok(phone.workspace.tools("alice"), "collab_write", **written)
    outdated = phone.answer(token, "approve", form)
    assert (outdated.status_code, phone.outcome(number)) == (409, None)
    assert "has changed" in text_of(outdated)
    assert "-other" in text_of(phone.open(token))
    assert phone.answer(token, "approve").status_code == 200


def test_an_answer_elsewhere_is_shown(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    form = phone.form(token)
    ok(phone.workspace.tools_for_human("eve"), "answer_request", request=number, approved=False)
    late = phone.answer(token, "approve", form)
    assert (late.status_code, phone.refusals) == (409, ["link_closed"])
    assert "answered by eve" in text_of(late)
    assert "answered by eve" in text_of(phone.open(token))
    assert phone.outcome(number) == "human:eve rejected"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "https://evil.example.org"},
        {"Origin": f"{ORIGIN}.evil.example.org"},
        {"Origin": f"http://{HOST}"},
        {"Origin": f"{ORIGIN}:8443"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "cross-site"},
        {"Origin": ORIGIN, "Sec-Fetch-Site": "same-site"},
    ],
)
def test_answers_of_other_pages_are_refused(phone: Phone, headers: dict[str, str]) -> None:
    number = phone.ask()
    token = phone.issue(number)
    refused = phone.answer(token, "approve", headers=headers)
    assert (refused.status_code, phone.refusals, phone.outcome(number)) == (403, ["link_origin"], None)
    assert phone.answer(
        token, "approve", headers={"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
    ).is_success


@pytest.mark.parametrize(
    "host", ["evil.example.org", f"{HOST}.evil.example.org", f"{HOST}:1", "127.0.0.1", ""]
)
def test_other_names_are_turned_away(phone: Phone, host: str) -> None:
    number = phone.ask()
    token = phone.issue(number)
    form = phone.form(token)
    headers = {"Host": host, "Origin": ORIGIN}
    for method in ("GET", "POST"):
        fields = {"form": form, "decision": "approve"} if method == "POST" else None
        given = phone.send(method, f"/need/{token}", data=fields, headers=headers)
        assert given.status_code == 421
        assert "alice" not in given.text
    assert phone.outcome(number) is None


def test_the_dashboard_is_not_behind_the_public_name(phone: Phone) -> None:
    for path in ("/", "/ws", "/static/js/textual.js", "/favicon.ico", "/need", "/robots.txt", "/?token=x"):
        assert phone.send("GET", path).status_code == 404, path
    assert phone.refusals == []


def raw(phone: Phone, *pieces: bytes, pause: float = 0.0, stop_early: bool = False) -> bytes:
    """Send ``pieces`` on a connection, and return everything that comes back until it ends."""
    with socket.create_connection(("127.0.0.1", phone.port), PATIENCE) as connection:
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause)
            if stop_early:
                connection.shutdown(socket.SHUT_WR)
            while received := connection.recv(65536):
                answer += received
        except ConnectionError:
            pass
        return answer


def test_large_and_malformed_requests_are_refused(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    line = f"POST /need/{token} HTTP/1.1\r\nHost: {HOST}\r\nOrigin: {ORIGIN}\r\n".encode()
    big = b"a" * (MAX_BODY_BYTES + 1)
    whole = line + b"Content-Length: %d\r\n\r\n" % len(big) + big
    assert raw(phone, whole).startswith(b"HTTP/1.1 413")
    chunked = line + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%s\r\n" % (len(big), big) * 3
    assert raw(phone, chunked).startswith(b"HTTP/1.1 413")
    assert raw(phone, line + b"X: " + b"x" * 40_000 + b"\r\n\r\n").startswith(b"HTTP/1.1 431")
    assert raw(phone, b"GET " + b"/x" * 20_000 + b" HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 4")
    assert raw(phone, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n").startswith(b"HTTP/1.1 400")
    two_hosts = f"GET /need/{token} HTTP/1.1\r\nHost: {HOST}\r\nHost: evil.example.org\r\n\r\n".encode()
    assert raw(phone, two_hosts)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert raw(phone, line + b"Content-Length: 100\r\n\r\nabc", stop_early=True)[:12] == b"HTTP/1.1 400"
    for kind, body in (
        ("multipart/form-data; boundary=x", b"x"),
        ("application/json", b"{}"),
        ("application/x-www-form-urlencoded", b"form=\xff"),
        ("application/x-www-form-urlencoded", b"a=b&" * 101),
    ):
        headers = {"Origin": ORIGIN, "Content-Type": kind}
        assert phone.send("POST", f"/need/{token}", content=body, headers=headers).status_code == 400
    assert phone.outcome(number) is None
    assert phone.answer(token, "approve").status_code == 200


def test_slow_requests_end_and_do_not_delay_others(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    head = f"POST /need/{token} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 50\r\n".encode()
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        slow = [pool.submit(raw, phone, head), pool.submit(raw, phone, head + b"\r\na", b"b", pause=1.0)]
        assert phone.answer(token, "approve").status_code == 200
        assert time.monotonic() - began < READ_SECONDS
        assert [each.result()[:12] for each in slow] == [b"HTTP/1.1 408"] * 2
    assert time.monotonic() - began < 2 * READ_SECONDS


def test_refused_rows_are_bounded_and_the_rest_is_counted(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        configure(workspace)
        with serving(workspace) as phone:
            number = phone.ask()
            token = phone.issue(number)
            statuses = [phone.open("C" * 43).status_code for _ in range(80)]
            assert statuses == [404] * 60 + [429] * 20
            assert len(phone.refusals) == MAX_ROWS
            assert phone.open(token).status_code == 200
        rows = phone.rows(REFUSE)
        assert len(rows) == MAX_ROWS + 1
        assert rows[-1].detail["uncounted"] == 60 - MAX_ROWS - 1


def test_one_link_is_not_shown_without_end(phone: Phone) -> None:
    token = phone.issue(phone.ask())
    statuses = [phone.open(token).status_code for _ in range(35)]
    assert statuses == [200] * 30 + [429] * 5


def test_a_person_who_no_longer_answers_is_refused(phone: Phone) -> None:
    number = phone.ask()
    token = phone.issue(number)
    form = phone.form(token)
    path = Path(phone.workspace.root) / ".watchroom/config.toml"
    path.write_text(path.read_text().replace('person = "dana"', 'person = "eve"'))
    phone.workspace.scan()
    refused = phone.answer(token, "approve", form)
    assert (refused.status_code, phone.refusals, phone.outcome(number)) == (403, ["link_person"], None)
    assert phone.open(phone.issue(number)).status_code == 200


def test_a_closed_workspace_is_answered_at_the_terminal_only(phone: Phone) -> None:
    number = phone.ask()
    before = phone.issue(number)
    form = phone.form(before)
    workspace = phone.workspace
    workspace.signing.signer = DANA
    workspace.people.add("human:dana", person("dana", "owner", DANA))
    # Closing the workspace changed the person's enrolment.
    assert phone.answer(before, "approve", form).status_code == 403
    assert phone.refusals == ["link_person"]
    token = phone.issue(number)
    page = phone.open(token)
    assert "only signed answers" in text_of(page)
    assert "+two" in text_of(page)
    assert "<form" not in page.text
    refused = phone.answer(token, "approve", form="0" * 64)
    assert (refused.status_code, phone.refusals[-1]) == (403, "link_signed")
    button = phone.send("POST", f"/approve/{phone.issue(number, 'approve')}")
    assert (button.status_code, phone.refusals[-1]) == (403, "link_signed")
    assert (phone.outcome(number), phone.rows("answer_request")) == (None, [])
    workspace.people.add("human:dana", person("dana", "owner", DANA), expected=1)
    assert (phone.open(token).status_code, phone.refusals[-1]) == (403, "link_person")


def test_the_links_of_a_revoked_person_stay_refused(phone: Phone) -> None:
    workspace, number = phone.workspace, phone.ask()
    workspace.signing.signer = DANA
    workspace.people.add("human:dana", person("dana", "owner", DANA))
    token = phone.issue(number)
    workspace.people.revoke("human:dana", "dana")
    assert not workspace.people.current().is_closed
    refused = phone.answer(token, "approve", form="0" * 64)
    assert (refused.status_code, phone.refusals, phone.outcome(number)) == (403, ["link_person"], None)
    assert phone.answer(phone.issue(number), "approve").status_code == 200


def test_a_button_approves_once_without_a_page(phone: Phone) -> None:
    number = phone.ask()
    token, page = phone.issue(number, "approve"), phone.issue(number)
    # The token of a page is not one of a button, and the reverse.
    assert phone.send("POST", f"/approve/{page}").status_code == 404
    assert phone.open(token).status_code == 404
    for headers in ({"Origin": ORIGIN}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert phone.send("POST", f"/approve/{token}", headers=headers).status_code == 403
    assert phone.outcome(number) is None
    assert phone.send("POST", f"/approve/{token}").status_code == 200
    assert phone.send("POST", f"/approve/{token}").status_code == 410
    assert phone.outcome(number) == "human:dana approved"


def test_a_button_approves_only_what_was_asked(phone: Phone) -> None:
    arguments = {"filepath": "plan.md", "content": "two\n", "message": "m"}
    checksum = phone.workspace.tools("alice").approval_checksum("collab_write", arguments)
    number = phone.ask(Request("approve", calls=(replace(PLAN, checksum=checksum),)))
    token = phone.issue(number, "approve")
    written = {**arguments, "content": "other\n", "expected_version": 1}
    ok(phone.workspace.tools("alice"), "collab_write", **written)
    refused = phone.send("POST", f"/approve/{token}")
    assert (refused.status_code, phone.refusals, phone.outcome(number)) == (409, ["link_changed"], None)
    assert "changed since the agent asked" in text_of(phone.open(phone.issue(number)))


def test_other_needs_are_only_described(phone: Phone) -> None:
    (token,) = phone.workspace.links.issue([(LinkedNeed("failed", 3, "bob stopped: <b>limit</b>"), "page")])
    page = phone.open(token)
    assert page.status_code == 200
    assert "bob stopped: <b>limit</b>" in text_of(page)
    assert "<b>" not in page.text
    assert "Open the dashboard" in text_of(page)
    assert phone.answer(token, "approve", form="0" * 64).status_code == 405
    assert phone.rows("answer_request") == []


HOSTILE = '</pre><script src="https://evil.example.org/x.js"></script>\u202egnp.exe\u200b&amp;'


def test_agents_texts_are_escaped_and_bounded(phone: Phone) -> None:
    lines = "".join(f"+{n} {HOSTILE}\n" for n in range(1000))
    long = f"@@ -0,0 +1,1001 @@\n{lines}+{'x' * 5000}\n"
    call = PendingCall("c1", f"Edit{HOSTILE}", f'{{"file_path": "{"a/" * 200}b.py", "x": "{"y" * 9000}"}}')
    asked = Request("approve", HOSTILE, calls=(call,), metadata={DIFFERENCE: long})
    page = phone.open(phone.issue(phone.ask(asked)))
    assert "<script" not in page.text
    assert "\u202e" not in page.text
    assert "\u200b" not in page.text
    shown = text_of(page)
    assert "\\u202egnp.exe\\u200b&amp;" in shown
    assert f"{1002 - MAX_LINES} more lines: open the dashboard" in shown
    assert "5000 more characters" in shown
    assert len(page.text) < 400_000


def test_arguments_are_not_left_out_unseen(phone: Phone) -> None:
    arguments = {**{f"x{number}": "" for number in range(60)}, "command": "rm -r /"}
    call = PendingCall("c1", "Bash", json.dumps(arguments))
    page = phone.open(phone.issue(phone.ask(Request("approve", calls=(call,)))))
    assert "11 more arguments: open the dashboard" in text_of(page)


def test_the_hidden_end_of_a_long_line_is_counted(phone: Phone) -> None:
    # The sign in front of the line counts too.
    line = f"x = 1{' ' * 394}; import evil"
    written = {**json.loads(PLAN.arguments), "content": f"{line}\n"}
    call = PendingCall("c1", "collab_write", json.dumps(written))
    shown = text_of(phone.open(phone.issue(phone.ask(Request("approve", calls=(call,))))))
    assert "import evil" not in shown
    assert "… 13 more characters: open the dashboard" in shown


def test_a_removed_line_cannot_look_like_a_head(phone: Phone) -> None:
    difference = (
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1 @@\n--- drop\n-x\n+++ y\n\\ No newline at end of file\n"
    )
    call = PendingCall("c1", "Edit", "{}")
    page = phone.open(
        phone.issue(phone.ask(Request("approve", calls=(call,), metadata={DIFFERENCE: difference})))
    )
    assert '<span class="removed">--- drop</span>' in page.text
    assert '<span class="added">+++ y</span>' in page.text
    assert '<span class="place">--- a/q.sql</span>' in page.text


def test_pages_load_nothing_and_are_not_kept(phone: Phone) -> None:
    page = phone.open(phone.issue(phone.ask()))
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(r"<script|<link|<img|src=|href=|style=| on\w+=", page.text)
    assert "Server" not in page.headers


def test_view_serves_no_pages(root: Path) -> None:
    with Workspace.open(root, agents=["alice"]) as workspace:
        configure(workspace)
        port = free_port()
        with server(root, "--view", "--phone-port", str(port)), pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


def by_path(posted: Sequence[Posted]) -> dict[str, Any]:
    return {each.path: each.body for each in posted}


def test_alerts_carry_links_that_answer(
    root: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hook", "ntfy", "chat"):
        monkeypatch.setitem(os.environ, f"WATCHROOM_{name.upper()}", f"{receiver.url}/{name}/t")
    with Workspace.open(root, agents=["alice"]) as workspace:
        configure(workspace)
        with serving(workspace) as phone:
            number = phone.ask()
            got = by_path([receiver.next() for _ in range(3)])
            hook, ntfy, chat = got["/hook/t"], got["/ntfy"], got["/chat/t"]
            assert hook["link"] == hook["needs"][0]["link"]
            assert hook["link"].startswith(f"{ORIGIN}/need/")
            assert hook["link"] in hook["text"]
            assert ORIGIN not in chat["text"]
            assert ntfy["click"] not in (hook["link"], "")
            view, approve = ntfy["actions"]
            assert (view["action"], view["url"]) == ("view", ntfy["click"])
            assert (approve["action"], approve["method"]) == ("http", "POST")
            alerts = phone.rows("send_alert")
            assert "/need/" not in str(alerts)
            assert phone.open(hook["link"].rpartition("/")[2]).status_code == 200
            assert phone.send("POST", approve["url"].removeprefix(ORIGIN)).status_code == 200
            assert phone.outcome(number) == "human:dana approved"
            # The other links of the request answer nothing more.
            late = phone.answer(ntfy["click"].rpartition("/")[2], "reject", form="0" * 64)
            assert late.status_code == 409
            ends = by_path([receiver.next() for _ in range(3)])
            assert "/need/" not in str(ends)


def test_a_message_that_is_sent_again_has_the_same_link(
    root: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "WATCHROOM_HOOK", f"{receiver.url}/hook/t")
    receiver.statuses.append(503)
    targets = CONFIG.partition("[alerts.targets.phone]")[0] + CONFIG[CONFIG.index("[web]") :]
    with Workspace.open(root, agents=["alice"]) as workspace:
        configure(workspace, targets.replace('["hook", "phone"]', '["hook"]'))
        with serving(workspace) as phone:
            phone.ask()
            first, second = receiver.next().body, receiver.next().body
            assert first == second
            assert len(phone.rows(ISSUE)) == 1
