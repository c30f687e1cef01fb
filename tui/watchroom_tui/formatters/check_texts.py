"""Texts about checks of agents' work: the same words on every screen and in reports. Sanitized. Pure."""

from __future__ import annotations

from typing import Final

from watchroom.features.checks.rows import CheckEnd
from watchroom.features.checks.view import CheckView
from watchroom.features.overview.agents import AgentView
from watchroom.texts import Catalogue

from watchroom_tui.presentation.sanitize import sanitize, shorten

_MAX_SUMMARY: Final = 120
_BY_SEQUEL: Final = {"back": "back", "unproven": "unproven", "again": "interrupted"}
"""The catalogue keys of results, by their consequence. Default: the check failed."""


def check_text(check: CheckView | None, texts: Catalogue) -> str:
    """Return the state of an agent's newest check, with the agent's claim that it is done. Empty without a
    check, and if the agent continued before the check ended."""
    if check is None:
        return ""
    end = check.end
    if end is None:
        name = sanitize(check.begin.check) if check.begin is not None else "?"
        return texts("check.running" if check.is_running else "check.interrupted", name=name)
    what = check_result(end, texts)
    if check.accepted is not None:
        return texts("check.accepted", what=what, who=sanitize(check.accepted.actor))
    if end.state == "passed":
        return texts("check.passed", what=what)
    if end.sequel == "superseded":
        return ""
    if end.state == "interrupted" and end.sequel != "unproven":
        return texts("check.interrupted")
    return texts(f"check.{_BY_SEQUEL.get(end.sequel, 'failed')}", what=what, count=end.sent)


def check_result(end: CheckEnd, texts: Catalogue) -> str:
    """Return the result of a check in a few words, such as ``2 of 41 tests``."""
    if end.state == "timed_out":
        return texts("check.timed_out")
    if end.state == "interrupted":
        return texts("check.cut_off")
    summary = shorten(end.summary, _MAX_SUMMARY)
    if end.state == "not_run":
        return texts("check.not_run", why=summary)
    if end.state == "passed":
        return texts("check.tests", count=end.total) if end.total else summary or sanitize(end.check)
    if end.failed and end.total:
        return texts("check.tests_failed", failed=end.failed, total=end.total)
    status = texts("check.status", status="?" if end.status is None else end.status)
    return f"{status}: {summary}" if summary else status


def claim_text(view: AgentView, texts: Catalogue, *, has_checks: bool) -> str:
    """Return a text about the agent's claim that it is done, for its details. Empty without such a claim.

    ``has_checks``: whether the workspace has checks.
    """
    session, check = view.session, view.check
    if session is None:
        return ""
    is_of_session = check is not None and (check.begin is None or check.begin.session == session.path)
    if is_of_session and (text := check_text(check, texts)):
        return text
    is_claim = session.status in ("idle", "done") and session.last.version != 1
    return texts("check.none") if has_checks and is_claim else ""
