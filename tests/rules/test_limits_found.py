"""Limits in the words of real clients and servers, with the reset time only where it was given."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from watchroom.features.sessions.limits import (
    MAX_WORDS,
    RateLimit,
    check_reset,
    find_limit,
    is_limit,
    limit_of_response,
)

NOW = int(datetime(2026, 11, 29, 12, 0, tzinfo=UTC).timestamp()) * 10**9
SECOND = 10**9


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp()) * 10**9


def after(seconds: float) -> int:
    return NOW + int(seconds * 1000) * 10**6


KNOWN = [
    # Claude Code
    ("Claude AI usage limit reached|1795968000", at("2026-11-29T16:00:00Z")),
    ("You've hit your session limit · resets 3pm (Europe/Berlin)", at("2026-11-29T14:01:00Z")),
    ("You've hit your limit · resets 12:50am (America/Los_Angeles)", at("2026-11-30T08:51:00Z")),
    ("Claude usage limit reached. Your limit will reset at 5pm (Asia/Tokyo).", at("2026-11-30T08:01:00Z")),
    ("Claude usage limit reached. Your limit will reset at 9am (Etc/GMT+5).", at("2026-11-29T14:01:00Z")),
    ("You've hit your weekly limit · resets Dec 3, 5:59am (America/New_York)", at("2026-12-03T11:00:00Z")),
    (
        "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
        at("2026-12-01T00:01:00Z"),
    ),
    # Codex
    (
        "You've hit your usage limit. Upgrade to Pro or try again in 2 days 17 hours 14 minutes.",
        after(2 * 86_400 + 17 * 3600 + 15 * 60),
    ),
    ("You've hit your usage limit. Try again in 5 minutes.", after(360)),
    (
        (
            'Codex error: {"type":"error","error":{"type":"usage_limit_reached","message":"The usage limit has been'
            ' reached","plan_type":"plus","resets_at":1795968000,"resets_in_seconds":14400},"status_code":429}'
        ),
        at("2026-11-29T16:00:00Z"),
    ),
    (
        (
            '{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached",'
            '"resets_in_seconds":7200}}'
        ),
        after(7200),
    ),
    # opencode
    (
        "You have exceeded the 5-hour usage quota. It will reset at 2026-11-29 22:11:46 +0800 CST.",
        at("2026-11-29T14:11:46Z"),
    ),
    ("5 hour usage limit reached. It will reset in 3 hours.", after(10_800)),
    # Gemini
    (
        "You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.",
        after(8 * 3600 + 44 * 60 + 7),
    ),
    (
        (
            '[429]: {"error": {"code": 429, "message": "You exceeded your current quota. Please retry in 34.074s.",'
            ' "status": "RESOURCE_EXHAUSTED"}}'
        ),
        after(34.074),
    ),
    (
        (
            '{"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"metadata": {"quotaResetDelay":'
            ' "25h20m26.1s", "quotaResetTimeStamp": "2026-11-30T13:20:26Z"}}]}'
        ),
        at("2026-11-30T13:20:26Z"),
    ),
    ('{"status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "91226.5s"}]}', after(91_226.5)),
    # OpenAI and Anthropic
    (
        (
            "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Used 14567,"
            " Requested 24754. Please try again in 18.642s. Visit https://platform.openai.com/account/rate-limits."
        ),
        after(18.642),
    ),
    ("Rate limit reached on tokens per min. Limit: 10000 / min. Please try again in 6ms.", after(0.006)),
    ("429 Too Many Requests, Retry-After: 20", after(20)),
    # The Agent Client Protocol: the message of an error and its data
    ("usage limit reached (resetsAt: 2026-11-29T15:00:00Z, limits: {})", at("2026-11-29T15:00:00Z")),
    ("limit (retryAfter: 30): rate limit", after(30)),
]
ROUNDED_DOWN = [
    # Said at 12:00:30: the client names the minute in which the limit resets.
    ("You've hit your session limit · resets 1pm (Europe/Berlin)", at("2026-11-29T12:01:00Z")),
    ("You've hit your session limit · resets 12:00 (UTC)", at("2026-11-29T12:01:00Z")),
    ("You've hit your usage limit. Try again in 1 hour 5 minutes.", at("2026-11-29T13:06:30Z")),
]
UNKNOWN = [
    "5-hour limit reached ∙ resets 3am",
    "You've hit your usage limit. To get more access now, send a request to your admin or try again at 2:57 PM.",
    "You've hit your usage limit. Upgrade your plan to continue, or try again at 10 de jul. de 2026, 11:52.",
    "Usage limit reached for 5 hour. Your limit will reset at 2026-11-29 20:30:24 [#8]",
    "You've hit your session limit · resets 3pm (Europe/Atlantis)",
    "You've hit your session limit · resets 3pm (EST)",
    "You've hit your session limit · resets 13pm (Europe/Berlin)",
    "API Error: Rate limit reached",
    "API Error: Request rejected (429) · Rate limited. Please try again later.",
    'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    (
        '429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your'
        " account's rate limit. Please try again later.\"}}"
    ),
    "[API Error: Resource has been exhausted (e.g. check quota).]",
    "rate_limit",
    "Claude AI usage limit reached|1764000000",  # past
    "Claude AI usage limit reached|1999999999",  # years away
    "You've hit your session limit · resets 12:30pm (Europe/Berlin)",  # half an hour ago
    "Your quota will reset after 0s. You have exhausted your capacity on this model.",
    "You've hit your usage limit. Try again in 99999999 days.",
    "rate limit, resets 2026-13-45T99:00:00Z",
    "rate limit, resets 0000-00-00T00:00Z",
    "rate limit, resets 0001-01-01T00:00+23:59",
    "rate limit, resets 9999-12-31T23:59Z",
    "rate limit, resets 9999-12-31T23:59:59-23:59",
    "rate limit, resets 9999999999999",
]
OTHERS = [
    "",
    "Prompt is too long",
    "Context limit reached · /compact or /clear to continue",
    "This model's maximum context length is 8192 tokens.",
    "API Error: 500 Internal server error",
    "API Error: 401 Invalid API key · Please run /login",
    "the connection was reset after 5 minutes",
    "Credit balance is too low",
    "max_output_tokens",
]


@pytest.mark.parametrize(("text", "resets"), ROUNDED_DOWN)
def test_a_time_in_minutes_lasts_until_the_end_of_its_minute(text: str, resets: int) -> None:
    found = find_limit(text, NOW + 30 * SECOND)
    assert found is not None
    assert found.resets == resets


@pytest.mark.parametrize(("text", "resets"), KNOWN)
def test_a_reset_time_that_was_given_is_kept(text: str, resets: int) -> None:
    limit = find_limit(text, NOW)
    assert limit is not None
    assert limit.resets == resets
    assert limit.text == text[: len(limit.text)] or limit.text.endswith("…")


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_reset_time_is_never_invented(text: str) -> None:
    assert find_limit(text, NOW) == RateLimit(None, text)


@pytest.mark.parametrize("text", OTHERS)
def test_other_errors_are_no_limits(text: str) -> None:
    assert find_limit(text, NOW) is None


def test_a_report_that_is_read_late_counts_from_its_own_time() -> None:
    said = "rate limit: try again in 10 minutes"
    limit = find_limit(said, NOW, said_at=NOW - 300 * SECOND)
    assert limit is not None
    assert limit.resets == after(360)
    stale = find_limit(said, NOW, said_at=NOW - 900 * SECOND)
    assert stale is not None
    assert stale.resets is None


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
@pytest.mark.parametrize("when", ["3pm (Asia/Tokyo)", "Jan 1, 3am (America/New_York)", "in 1 day"])
def test_the_time_of_a_report_can_be_any(date: str, when: str) -> None:
    text = f"You've hit your usage limit · resets {when}"
    limit = find_limit(text, NOW, said_at=int(datetime.fromisoformat(date).timestamp() * 1e9))
    assert limit is not None
    assert limit.resets is None or limit.resets > NOW


@pytest.mark.parametrize("seconds", [0, NOW // SECOND, NOW // SECOND + 9 * 86_400, 2**53])
def test_a_reset_that_is_past_or_too_far_away_is_unknown(seconds: int) -> None:
    assert check_reset(seconds, NOW) is None


@pytest.mark.parametrize(
    ("retry_after", "resets"),
    [
        ("20", after(20)),
        ("Sun, 29 Nov 2026 13:00:00 GMT", after(3600)),
        ("Sun, 29 Nov 2026 11:00:00 GMT", None),
        ("soon", None),
        ("", None),
        ("999999999999", None),
    ],
)
def test_the_header_of_a_server_counts(retry_after: str, resets: int | None) -> None:
    for status in (429, 529):
        assert limit_of_response(status, "slow down", retry_after, NOW) == RateLimit(resets, "slow down")
    assert limit_of_response(500, "slow down", retry_after, NOW) is None


def test_a_server_without_the_header_can_name_the_time_in_its_message() -> None:
    limit = limit_of_response(429, "Please try again in 20s.", "", NOW)
    assert limit == RateLimit(after(20), "Please try again in 20s.")


def test_the_words_are_one_bounded_line_that_can_be_stored() -> None:
    limit = find_limit("rate limit \0 \ud800" + "x" * 1000 + "\nsecond line", NOW)
    assert limit is not None
    assert len(limit.text) <= MAX_WORDS + 20
    assert not {"\n", "\0"} & {*limit.text}
    limit.text.encode()


@given(
    st.text(max_size=300)
    | st.from_regex(r"(resets?|try again|retry[-_]after)[ :=(\"]{1,5}[0-9 hms:,TZ.+-]{0,40}\)?")
)
def test_no_text_breaks_the_search_and_no_reset_is_past(text: str) -> None:
    for given_text in (text, "rate limit " + text):
        limit = find_limit(given_text, NOW)
        assert limit is None or limit.resets is None or NOW < limit.resets <= NOW + 8 * 86_400 * SECOND


@pytest.mark.parametrize(
    "piece", ["reset", "retry-", "try again in 1 day ", "hit your a ", "jan 1, 1 (", "1" * 10, "resource "]
)
def test_a_long_text_is_searched_in_little_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    begun = time.process_time()
    find_limit(text, NOW)
    find_limit("rate limit " + text, NOW)
    assert time.process_time() - begun < 1.0
    assert is_limit("rate limit " + text)
