"""The table ``[alerts]`` of a config, and when it is quiet."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from watchroom.errors import ConfigInvalid
from watchroom.features.alerts.rules import QuietHours, dump_alerts, is_link, is_web_address, parse_alerts
from watchroom.features.config.rows import dump_config, parse_config

WHOLE = """
[alerts]
kinds = ["request", "failed"]
digest_seconds = 60
ended = false
link = "https://watch.example/team"

[alerts.quiet]
start = "22:00"
end = "07:00"
zone = "Europe/Berlin"

[alerts.targets.phone]
type = "ntfy"
url = "https://ntfy.sh/team"
token = "$NTFY_TOKEN"

[alerts.targets.chat]
type = "slack"
url = "$CHAT_URL"
"""


def test_what_is_written_is_read_again() -> None:
    config = parse_config(WHOLE)
    assert config.alerts.targets["phone"].token == "$NTFY_TOKEN"
    assert parse_config(dump_config(config)) == config


def test_the_example_of_the_page_is_a_valid_table() -> None:
    page = (Path(__file__).parents[2] / "docs/needs.md").read_text(encoding="utf-8")
    (example,) = (each.partition("```")[0] for each in page.split("```toml\n")[1:])
    alerts = parse_config(example).alerts
    assert {target.type for target in alerts.targets.values()} == {"ntfy", "slack"}
    assert alerts.quiet is not None


@pytest.mark.parametrize(
    ("before", "after", "entry"),
    [
        ("ended = false", "ended = 0", "alerts.ended"),
        ("ended = false", "endet = false", "alerts.endet"),
        ("= 60", "= -1", "alerts.digest_seconds"),
        ("= 60", "= true", "alerts.digest_seconds"),
        ("= 60", '= "60"', "alerts.digest_seconds"),
        ('"failed"', '"failure"', "alerts.kinds"),
        ("https://watch.example/team", "https://watch.example/?token=s3cret", "alerts.link"),
        ("https://watch.example/team", "file:///s3cret", "alerts.link"),
        ("22:00", "24:00", "alerts.quiet.start"),
        ("22:00", "07:00", "alerts.quiet"),
        ("Europe/Berlin", "../../etc/passwd", "alerts.quiet.zone"),
        ("https://ntfy.sh/team", "file:///s3cret", "alerts.targets.phone.url ($VARIABLE, http, https)"),
        ("https://ntfy.sh/team", "https://me:s3cret@ntfy.sh/team", "alerts.targets.phone.url"),
        ("https://ntfy.sh/team", "https://ntfy.sh:s3cret/team", "alerts.targets.phone.url"),
        ("$NTFY_TOKEN", "s3cret", "alerts.targets.phone.token"),
        ('"slack"', '"pigeon"', "alerts.targets.chat.type"),
        (
            '"slack"\nurl = "$CHAT_URL"',
            '"apprise"\nurl = "tgram://s3cret/1"',
            "alerts.targets.chat.url ($VARIABLE)",
        ),
        ("targets.chat", 'targets."a\\u001b[2Jb"', "alerts.targets."),
    ],
)
def test_a_wrong_entry_is_named_and_no_secret_is(before: str, after: str, entry: str) -> None:
    assert before in WHOLE
    with pytest.raises(ConfigInvalid) as refused:
        parse_config(WHOLE.replace(before, after))
    assert entry in refused.value.message()
    assert "s3cret" not in refused.value.message()
    assert refused.value.message().isprintable()


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-03-28T21:59:59", None),
        # Clocks go forward that night.
        ("2026-03-28T22:00:00", "2026-03-29T07:00:00"),
        ("2026-03-29T06:59:59", "2026-03-29T07:00:00"),
        ("2026-03-29T07:00:00", None),
    ],
)
def test_quiet_hours_end_by_the_clocks_of_their_zone(at: str, until: str | None) -> None:
    zone = ZoneInfo("Europe/Berlin")

    def moment(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * 1_000_000_000

    found = QuietHours("22:00", "07:00", zone.key).end_of(moment(at), zone)
    assert found == (moment(until) if until else None)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-03-01T11:59:59", None),
        ("2026-03-01T12:00:00", "2026-03-01T13:00:00"),
        ("2026-03-01T12:59:59", "2026-03-01T13:00:00"),
        ("2026-03-01T13:00:00", None),
    ],
)
def test_quiet_hours_within_a_day_end_on_that_day(at: str, until: str | None) -> None:
    zone = ZoneInfo("UTC")

    def moment(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * 1_000_000_000

    found = QuietHours("12:00", "13:00", "UTC").end_of(moment(at), zone)
    assert found == (moment(until) if until else None)


@pytest.mark.parametrize(
    ("url", "is_address", "is_page"),
    [
        ("https://watch.example/team?view=1", True, True),
        ("http://[::1]:8080", True, True),
        ("https://watch.example/?token=x", True, False),
        ("https://watch.example/?a=1&token", True, False),
        ("https://watch.example/?tokens=x", True, True),
        ("https://h/" + "a" * 1990, True, True),
        ("https://h/" + "a" * 1991, False, False),
        ("https://watch.example/a b", False, False),
        ("https://watch.example/a\nb", False, False),
        ("https://watch.example/\u202e", False, False),
        ("https://ann@watch.example", False, False),
        ("https://:pw@watch.example", False, False),
        ("https://watch.example:0", False, False),
        ("https://watch.example:65535", True, True),
        ("https://watch.example:65536", False, False),
        ("https://watch.example:x", False, False),
        ("https://", False, False),
        ("https://[::1", False, False),
        ("ftp://watch.example", False, False),
        ("watch.example", False, False),
        ("", False, False),
        (5, False, False),
    ],
)
def test_an_address_is_one_of_the_web_that_lets_nobody_in(
    url: object, is_address: bool, is_page: bool
) -> None:
    assert (is_web_address(url), is_link(url)) == (is_address, is_page)


TARGET: dict[str, object] = {"type": "ntfy", "url": "https://ntfy.sh/team"}
QUIET: dict[str, object] = {"start": "22:00", "end": "07:00", "zone": "UTC"}


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"kinds": ["failed"]},
        {"digest_seconds": 0},
        {"digest_seconds": 86_400},
        {"ended": False},
        {"link": "https://watch.example"},
        {"quiet": QUIET},
        {"quiet": {**QUIET, "start": "00:00", "end": "23:59", "zone": "Z" + "x" * 59}},
        {"targets": {str(n): TARGET for n in range(20)}},
        {"targets": {"a" * 40: {**TARGET, "token": "$" + "T" * 100}}},
        {"targets": {"a": {"type": "apprise", "url": "$URL"}}},
        {"targets": {"a": {"type": "webhook", "url": "$_url1"}}},
        {"targets": {"a": {"type": "plugin", "url": "$URL", "token": "$TOKEN", "plugin": "p" * 40}}},
    ],
    ids=str,
)
def test_a_table_at_its_bounds_is_read_and_written_again(table: dict[str, object]) -> None:
    settings = parse_alerts(table)
    written = dump_alerts(settings)
    assert parse_alerts(written) == settings
    assert written == table


@pytest.mark.parametrize(
    ("table", "entry"),
    [
        ([], "alerts"),
        ({"kinds": []}, "alerts.kinds"),
        ({"kinds": "failed"}, "alerts.kinds"),
        ({"kinds": ["failed", 5]}, "alerts.kinds"),
        ({"digest_seconds": 86_401}, "alerts.digest_seconds"),
        ({"digest_seconds": -1}, "alerts.digest_seconds"),
        ({"digest_seconds": 1.5}, "alerts.digest_seconds"),
        ({"ended": None}, "alerts.ended"),
        ({"link": None}, "alerts.link"),
        ({"targets": []}, "alerts.targets"),
        ({"targets": {str(n): TARGET for n in range(21)}}, "alerts.targets (0"),
        ({"targets": {str(n): TARGET for n in range(25)}}, "alerts.targets (0"),
        ({"targets": {"a" * 41: TARGET}}, "alerts.targets."),
        ({"targets": {"_a": TARGET}}, "alerts.targets."),
        ({"targets": {"": TARGET}}, "alerts.targets."),
        ({"targets": {"a": 5}}, "alerts.targets.a"),
        ({"targets": {"a": {**TARGET, "more": 1}}}, "alerts.targets.a.more"),
        ({"targets": {"a": {"url": "$URL"}}}, "alerts.targets.a.type"),
        ({"targets": {"a": {"type": "ntfy"}}}, "alerts.targets.a.url"),
        ({"targets": {"a": {**TARGET, "url": "$1"}}}, "alerts.targets.a.url"),
        ({"targets": {"a": {**TARGET, "url": "$" + "U" * 101}}}, "alerts.targets.a.url"),
        ({"targets": {"a": {"type": "apprise", "url": "https://ntfy.sh"}}}, "alerts.targets.a.url"),
        ({"targets": {"a": {**TARGET, "token": 5}}}, "alerts.targets.a.token"),
        ({"targets": {"a": {**TARGET, "token": "$" + "T" * 101}}}, "alerts.targets.a.token"),
        (
            {"targets": {"a": {"type": "apprise", "url": "$URL", "token": "$TOKEN"}}},
            "alerts.targets.a.token",
        ),
        ({"targets": {"a": {"type": "plugin", "url": "$URL"}}}, "alerts.targets.a.plugin"),
        ({"targets": {"a": {**TARGET, "plugin": "sms"}}}, "alerts.targets.a.plugin"),
        ({"targets": {"a": {**TARGET, "plugin": 5}}}, "alerts.targets.a.plugin"),
        (
            {"targets": {"a": {"type": "plugin", "url": "$URL", "plugin": "P" * 3}}},
            "alerts.targets.a.plugin",
        ),
        (
            {"targets": {"a": {"type": "plugin", "url": "https://ntfy.sh", "plugin": "sms"}}},
            "alerts.targets.a.url",
        ),
        ({"quiet": []}, "alerts.quiet"),
        ({"quiet": {**QUIET, "more": 1}}, "alerts.quiet.more"),
        ({"quiet": {**QUIET, "start": 22}}, "alerts.quiet.start"),
        ({"quiet": {**QUIET, "start": "7:00"}}, "alerts.quiet.start"),
        ({"quiet": {**QUIET, "end": "23:60"}}, "alerts.quiet.end"),
        ({"quiet": {"start": "22:00", "end": "07:00"}}, "alerts.quiet.zone"),
        ({"quiet": {**QUIET, "zone": "Z" + "x" * 60}}, "alerts.quiet.zone"),
        ({"quiet": {**QUIET, "zone": 1}}, "alerts.quiet.zone"),
        ({"quiet": {**QUIET, "end": "22:00"}}, "alerts.quiet: start = end"),
    ],
    ids=str,
)
def test_what_is_beyond_the_bounds_is_refused_by_its_place(table: object, entry: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        parse_alerts(table)
    assert str(refused.value.values["problem"]).startswith(entry)


def test_a_kind_that_is_named_twice_is_sent_once() -> None:
    assert parse_alerts({"kinds": ["failed", "request", "failed"]}).kinds == ("failed", "request")
