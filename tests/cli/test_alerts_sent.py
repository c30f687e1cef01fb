"""``watchroom watch --send``: alerts reach people once, without an open dashboard."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from calls import ok
from cli.running import as_typed, run, spawned
from projections.folding import folded
from receiver import PATIENCE, Receiver, receiving
from refusing import refusing
from service_process import running_service
from tui.team import collide
from watchroom import Toolbox, Workspace
from watchroom.features.alerts.delivery import open_delivery
from watchroom.features.alerts.rows import AlertItem
from watchroom.features.alerts.rules import AlertSettings
from watchroom.features.alerts.sender import AlertOutbox
from watchroom.features.overview.model import urgent_needs
from watchroom.features.requests.rows import Request
from watchroom.features.sessions.runtime.models import RetryPolicy
from watchroom.kernel.call_context import CallContext
from watchroom.model import SEND_ALERT, Row, timestamp
from watchroom.serving.service.link import ServiceLink
from watchroom.texts import catalogue
from watchroom_cli.main import OK, USAGE
from watchroom_cli.plain.sentences import alert_wording
from watchroom_tui.formatters.local_time import use_utc, zoned_time

pytestmark = pytest.mark.slow(6)

SECRET = "s3cret"
SECOND = 1_000_000_000
NOON = 1_767_268_800 * SECOND  # 2026-01-01 12:00 UTC
HOOK = '[alerts]\ndigest_seconds = 0\n[alerts.targets.hook]\ntype = "webhook"\nurl = "$HOOK"\n'
HOSTILE = AlertItem("message", "bob", 5, "bob wrote: <!channel> <https://evil.example|ours> @everyone", "bob")
STUCK = AlertItem("failed", "alice", 7, "alice stopped: no connection", "alice")
ASKED = AlertItem("request", "bob/1/1", 9, "bob asks: Which month?", "bob")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as opened:
        yield opened


def configure(workspace: Workspace, text: str) -> None:
    path = Path(workspace.root) / ".watchroom/config.toml"
    path.write_text(f"{path.read_text()}\n{text}")
    workspace.scan()
    assert workspace.registry.find_invalid() is None


def alert_rows(workspace: Workspace) -> list[Row]:
    return [row for row in workspace.journal.rows(limit=10_000) if row.tool == SEND_ALERT]


@contextmanager
def sending(
    workspace: Workspace, environ: Mapping[str, str], *options: str
) -> Iterator[subprocess.Popen[str]]:
    """Run the command within the context. It must end without leftovers or errors."""
    with subprocess.Popen(
        as_typed("watch", workspace.root, "--send", *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUTF8": "1", **environ},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> str:
    """Return the output of the process after asking it to end."""
    process.send_signal(signal.SIGTERM)
    printed, complaints = process.communicate(timeout=PATIENCE)
    assert (process.returncode, complaints) == (OK, "")
    return printed


def test_every_target_gets_each_need_and_its_end_once(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, receiver: Receiver
) -> None:
    targets = (
        '[alerts.targets.chat]\ntype = "slack"\nurl = "$CHAT"\n'
        '[alerts.targets.phone]\ntype = "ntfy"\nurl = "$PHONE"\ntoken = "$TOKEN"\n'
    )
    configure(workspace, HOOK + targets)
    environ = {name: f"{receiver.url}/{name.lower()}/{SECRET}" for name in ("HOOK", "CHAT", "PHONE")}
    environ["TOKEN"] = SECRET
    link = "http://127.0.0.1:8642/"
    number = collide(alice, bob)
    wanted = "bob and alice both changed plan.md."
    with sending(workspace, environ, "--link", link) as process:
        got = {posted.path: posted for posted in (receiver.next() for _ in range(3))}
        hook = got[f"/hook/{SECRET}"].body
        assert (hook["event"], hook["workspace"], hook["link"]) == ("new", "team", link)
        (need,) = hook["needs"]
        assert (need["kind"], need["agent"], need["row"]) == ("conflict", "bob", number)
        assert got[f"/chat/{SECRET}"].body["text"].splitlines()[1:] == [wanted, link]
        phone = got["/phone"]
        assert (phone.body["topic"], phone.body["message"]) == (SECRET, f"{wanted}\n{link}")
        assert phone.headers["Authorization"] == f"Bearer {SECRET}"
        ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=number)
        ends = [receiver.next() for _ in range(3)]
        assert {posted.body["event"] for posted in ends if "event" in posted.body} == {"ended"}
        printed = ended(process)
    assert "Alert sent to phone: no longer needs you: bob and alice" in printed
    assert receiver.rest() == []
    rows = alert_rows(workspace)
    assert sorted((row.path, row.detail["event"]) for row in rows) == [
        (target, event) for target in ("chat", "hook", "phone") for event in ("ended", "new")
    ]
    assert SECRET not in printed + str(rows)


def test_an_alert_has_a_link_to_its_need_in_place_of_the_dashboards(
    workspace: Workspace, receiver: Receiver
) -> None:
    place = "https://team.example.org"
    configure(workspace, f'{HOOK}[web]\npublic_url = "{place}"\nperson = "dana"\ntargets = ["hook"]\n')
    link = "http://127.0.0.1:8642/"
    with sending(workspace, {"HOOK": receiver.url}, "--link", link) as process:
        asked = workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("prompt", "Which month?"))
        body = receiver.next().body
        assert body["link"].startswith(f"{place}/need/")
        assert body["text"].splitlines()[1:] == [body["link"], link]
        found = workspace.links.find(body["link"].rpartition("/")[2])
        assert found.link is not None
        assert (found.refusal, found.link.row, found.link.person) == (None, asked.seq, "dana")
        ended(process)


def test_a_restarted_sender_sends_missed_ends_and_nothing_twice(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, receiver: Receiver
) -> None:
    configure(workspace, HOOK)
    number = collide(alice, bob)
    workspace.requests.ask(CallContext("alice"), "alice/mcp/1", Request("prompt", "Which month?"))
    environ = {"HOOK": receiver.url}
    with sending(workspace, environ) as process:
        assert len(receiver.next().body["needs"]) == 2
        ended(process)
    ok(workspace.tools_for_human("dana"), "dismiss_conflict", conflict=number)
    with sending(workspace, environ) as process:
        body = receiver.next().body
        assert (body["event"], [each["kind"] for each in body["needs"]]) == ("ended", ["conflict"])
        workspace.requests.ask(CallContext("alice"), "alice/mcp/2", Request("prompt", "Which year?"))
        body = receiver.next().body
        assert (body["event"], len(body["needs"])) == ("new", 1)
        assert "Which year?" in body["text"]
        second = spawned("watch", workspace.root, "--send", **environ)
        assert (second.returncode, second.stdout) == (USAGE, "")
        assert "Another process" in second.stderr
        ended(process)
    assert receiver.rest() == []


# -- one target, with the test's own clock


def outbox_of(workspace: Workspace, receiver: Receiver, lines: list[str], retries: int = 2) -> AlertOutbox:
    """Return the outbox of the only configured target."""
    settings, texts = workspace.config.alerts, catalogue("en")
    (target,) = settings.targets.values()
    delivery = open_delivery(target, {"HOOK": f"{receiver.url}/{SECRET}"}, "team", "", texts)
    retry = RetryPolicy(retries=retries, base=2.0, longest=60.0, jitter=lambda: 1.0)
    return AlertOutbox(workspace.alerts, target.name, delivery, settings, texts, lines.append, retry)


def events(receiver: Receiver) -> Sequence[tuple[str, int]]:
    return [(posted.body["event"], len(posted.body["needs"])) for posted in receiver.rest()]


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "socks4://127.0.0.1:9"])
def test_a_message_waits_while_the_proxy_in_the_environment_cannot_be_used(
    workspace: Workspace, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    configure(workspace, HOOK)
    lines: list[str] = []
    outbox = outbox_of(workspace, receiver, lines)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", proxy)
    later = outbox.advance([STUCK], NOON) or 0
    assert later > NOON
    assert lines[0].startswith("Alert to hook is delayed (")
    monkeypatch.delenv("ALL_PROXY")
    assert outbox.advance([STUCK], later) is None
    assert events(receiver) == [("new", 1)]


def test_a_failed_message_is_retried_then_given_up_and_reported(
    workspace: Workspace, receiver: Receiver
) -> None:
    configure(workspace, HOOK)
    lines: list[str] = []
    outbox = outbox_of(workspace, receiver, lines)
    receiver.statuses.extend([500, 503])
    now = NOON
    times = []
    for _ in range(3):
        following = outbox.advance([STUCK], now)
        times.append(None if following is None else (following - now) // SECOND)
        now = following or now
    assert times == [2, 4, None]
    assert events(receiver) == [("new", 1)] * 3
    assert lines == [
        "Alert to hook is delayed (status 500): needs you: alice stopped: no connection.",
        "Alert sent to hook: needs you: alice stopped: no connection.",
    ]
    receiver.statuses.extend([500] * 3)
    for _ in range(3):
        now = outbox.advance([STUCK, ASKED], now) or now
    assert outbox.advance([STUCK, ASKED], now) is None
    assert (
        lines[-1] == "Alert to hook failed and is not retried (status 500): needs you: bob asks: Which month?"
    )
    assert [(row.outcome, row.error) for row in alert_rows(workspace)] == [
        ("failed", "alert_delayed"),
        ("ok", ""),
        ("failed", "alert_delayed"),
        ("failed", "alert_not_sent"),
    ]
    assert len(events(receiver)) == 3
    # An undelivered alert has no end; a delivered one has.
    assert outbox.advance([], now) is None
    assert events(receiver) == [("ended", 1)]
    # The next sender tries again.
    assert outbox_of(workspace, receiver, lines).advance([ASKED], now) is None
    assert events(receiver) == [("new", 1)]


@pytest.mark.sqlite
def test_nothing_more_is_sent_until_a_sent_message_is_recorded(
    workspace: Workspace, root: Path, receiver: Receiver
) -> None:
    configure(workspace, HOOK)
    lines: list[str] = []
    outbox, now = outbox_of(workspace, receiver, lines), NOON
    with refusing(root, f"NEW.tool = '{SEND_ALERT}'"):
        for items in ([STUCK], [STUCK, ASKED], [ASKED]):
            following = outbox.advance(items, now)
            assert following is not None
            assert following > now
            now = following
        assert events(receiver) == [("new", 1)]
        assert lines == []
    assert outbox.advance([STUCK, ASKED], now) is None
    assert events(receiver) == [("new", 1)]
    assert [row.outcome for row in alert_rows(workspace)] == ["ok", "ok"]
    assert len(lines) == 2
    assert outbox_of(workspace, receiver, lines).advance([STUCK, ASKED], now) is None
    assert events(receiver) == []


def test_a_new_need_is_sent_with_its_deadline(workspace: Workspace, receiver: Receiver) -> None:
    configure(workspace, HOOK)
    until = workspace.journal.now() + 600 * SECOND
    row = workspace.requests.ask(
        CallContext("alice"), "alice/1", Request("prompt", "Which month?", expires=until)
    )
    (need,) = urgent_needs(folded(workspace.journal), row.time)
    with use_utc():
        outbox_of(workspace, receiver, []).advance([alert_wording("en").describe(need)], NOON)
        outbox_of(workspace, receiver, []).advance([], NOON)
        said = zoned_time(until)
    new, end = (posted.body for posted in receiver.rest())
    assert said.endswith("+00:00")
    assert new["text"] == f"alice asks: Which month? Answer by {said}."
    assert new["needs"][0]["deadline"] == timestamp(until)
    assert end["text"] == "alice asks: Which month?"


@pytest.mark.parametrize("status", [302, 403, 404])
def test_a_refusal_is_final_and_no_redirect_is_followed(
    workspace: Workspace, receiver: Receiver, status: int
) -> None:
    configure(workspace, HOOK)
    lines: list[str] = []
    outbox = outbox_of(workspace, receiver, lines)
    receiver.statuses.append(status)
    outbox.advance([STUCK], NOON)
    assert outbox.advance([STUCK], NOON) is None
    assert [posted.path for posted in receiver.rest()] == [f"/{SECRET}"]
    assert f"not retried (status {status})" in lines[0]
    assert SECRET not in str(lines) + str(alert_rows(workspace))


def test_an_unreachable_server_is_reported_without_its_address(workspace: Workspace) -> None:
    configure(workspace, HOOK)
    lines: list[str] = []
    with receiving() as gone:
        pass
    assert outbox_of(workspace, gone, lines).advance([STUCK], NOON) == NOON + 2 * SECOND
    assert "(no connection)" in lines[0]
    assert gone.url not in lines[0] + str(alert_rows(workspace))


def test_needs_within_a_digest_are_one_message_without_settled_ones(
    workspace: Workspace, receiver: Receiver
) -> None:
    configure(workspace, HOOK.replace("digest_seconds = 0", "digest_seconds = 60"))
    outbox = outbox_of(workspace, receiver, [])
    gone = ASKED._replace(since=11)
    assert outbox.advance([STUCK, gone], NOON) == NOON + 60 * SECOND
    assert outbox.advance([STUCK, ASKED], NOON + 50 * SECOND) == NOON + 60 * SECOND
    assert events(receiver) == []
    assert outbox.advance([STUCK, ASKED], NOON + 60 * SECOND) is None
    assert events(receiver) == [("new", 2)]


def test_quiet_hours_hold_everything_until_they_end(workspace: Workspace, receiver: Receiver) -> None:
    quiet = '[alerts.quiet]\nstart = "12:30"\nend = "07:00"\nzone = "UTC"\n'
    configure(workspace, HOOK + quiet)
    outbox = outbox_of(workspace, receiver, [])
    assert outbox.advance([STUCK], NOON) is None
    assert events(receiver) == [("new", 1)]
    morning = NOON + 19 * 3600 * SECOND
    assert outbox.advance([ASKED], NOON + 3600 * SECOND) == morning
    assert outbox.advance([ASKED], morning - SECOND) == morning
    assert events(receiver) == []
    assert outbox.advance([ASKED], morning) is None
    assert events(receiver) == [("ended", 1), ("new", 1)]


def test_texts_of_agents_contain_no_mentions_or_links_in_a_chat(
    workspace: Workspace, receiver: Receiver
) -> None:
    configure(workspace, HOOK.replace("webhook", "slack"))
    outbox_of(workspace, receiver, []).advance([HOSTILE], NOON)
    (posted,) = receiver.rest()
    assert [each for each in ("<", ">", "@everyone") if each in posted.body["text"]] == []
    assert posted.body["mrkdwn"] is False


@pytest.mark.filterwarnings("ignore:.imghdr. is deprecated")  # from a library that Apprise imports
def test_apprise_sends_to_the_service_in_a_variable(
    workspace: Workspace,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure(
        workspace, '[alerts]\ndigest_seconds = 0\n[alerts.targets.any]\ntype = "apprise"\nurl = "$ANY"\n'
    )
    settings, texts = workspace.config.alerts, catalogue("en")
    environ = {"ANY": receiver.url.replace("http", "json") + f"/{SECRET}"}
    delivery = open_delivery(settings.targets["any"], environ, "team", "", texts)
    lines: list[str] = []
    outbox = AlertOutbox(workspace.alerts, "any", delivery, settings, texts, lines.append)
    receiver.statuses.append(302)
    later = outbox.advance([STUCK], NOON) or 0
    assert later > NOON
    assert outbox.advance([STUCK, HOSTILE], later) is None
    first, second = (posted.body["message"] for posted in receiver.rest())
    assert first == "alice stopped: no connection."
    assert second.startswith(first)
    assert "everyone" in second
    assert "@everyone" not in second
    assert lines[-1].startswith("Alert sent to any")
    monkeypatch.setitem(sys.modules, "apprise", None)
    monkeypatch.setenv("ANY", environ["ANY"])
    status, out, err = run(capsys, "watch", workspace.root, "--send")
    assert (status, out) == (USAGE, "")
    assert 'alerts.targets.any needs Apprise, from the extra: pip install "watchroom[apprise]"' in err


@pytest.mark.parametrize(
    ("config", "environ", "says"),
    [
        ("", {}, "no target in [alerts.targets]"),
        (HOOK, {}, "alerts.targets.hook.url: $HOOK is not set."),
        (HOOK, {"HOOK": f"file:///{SECRET}"}, "alerts.targets.hook.url is not a valid address"),
        (
            HOOK,
            {"HOOK": f"http://user:{SECRET}@127.0.0.1/"},
            "alerts.targets.hook.url is not a valid address",
        ),
        (
            HOOK + '[alerts.quiet]\nstart = "22:00"\nend = "07:00"\nzone = "Nowhere/None"\n',
            {"HOOK": "http://127.0.0.1:9/"},
            "unknown time zone Nowhere/None",
        ),
    ],
)
def test_an_invalid_target_is_reported_before_anything_is_sent(
    workspace: Workspace,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    config: str,
    environ: Mapping[str, str],
    says: str,
) -> None:
    configure(workspace, config)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    status, out, err = run(capsys, "watch", workspace.root, "--send")
    assert (status, out) == (USAGE, "")
    assert says in err
    assert SECRET not in err


def test_a_link_must_be_an_address_without_a_token(team: str, capsys: pytest.CaptureFixture[str]) -> None:
    for link in ("javascript:alert(1)", f"http://127.0.0.1:8642/?token={SECRET}"):
        status, _, err = run(capsys, "watch", team, "--send", "--link", link)
        assert status == USAGE
        assert "--link must be an http or https address" in err
        assert SECRET not in err
    assert run(capsys, "watch", team, "--link", "http://127.0.0.1/")[0] == USAGE


def test_without_the_table_nothing_is_configured(workspace: Workspace) -> None:
    assert workspace.config.alerts == AlertSettings()


def test_the_service_sends_alerts_and_follows_the_configuration(
    workspace: Workspace, alice: Toolbox, bob: Toolbox, receiver: Receiver
) -> None:
    with running_service(), closing(ServiceLink((), "/use", [("root", workspace.root)])) as link:
        link.start()
        configure(workspace, HOOK.replace("$HOOK", f"{receiver.url}/hook"))
        number = collide(alice, bob)
        (need,) = receiver.next().body["needs"]
        assert (need["kind"], need["row"]) == ("conflict", number)
        refused = spawned("watch", workspace.root, "--send")
        assert (refused.returncode, "Another process" in refused.stderr) == (USAGE, True)
    assert [row.path for row in alert_rows(workspace)] == ["hook"]
