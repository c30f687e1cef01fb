"""Texts about needs: the same words on every screen, in the plain dashboard and in alerts. All texts are
sanitized, except the subject. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from watchroom.features.checks.rows import read_end
from watchroom.features.overview.model import Need
from watchroom.features.plans.rows import read_plan
from watchroom.features.routines.rows import STOP_ROUTINE, read_reason
from watchroom.features.sessions.rows import parking_of
from watchroom.features.sessions.view import RequestView
from watchroom.features.trees.rows import INTO, read_prediction, side_of
from watchroom.kernel.rules.conflicts import NOT_A_FILE
from watchroom.kernel.rules.details import get_text
from watchroom.model import MACHINE, PEOPLE_LOST, REVERT_WORK, Row
from watchroom.texts import Catalogue

from watchroom_tui.formatters.check_texts import check_result
from watchroom_tui.formatters.columns import fit_path
from watchroom_tui.formatters.labels import MOST_NAMED, SUBJECT_WIDTH, path_of, request_text, reset_time
from watchroom_tui.formatters.machines import RemoteNeed, remote_sentence
from watchroom_tui.presentation.sanitize import sanitize, shorten

_FLAWS: Final[dict[str, str]] = {
    "decision_unsigned": "unsigned",
    "agent_cannot_answer": "by_agent",
    "keys_not_typed": "not_typed",
    "decision_stranger": "not_theirs",
    "decision_role": "not_theirs",
    "decision_limits": "not_theirs",
    "decision_expired": "not_theirs",
    "decision_key": "not_theirs",
    "decision_form": "wrong_form",
    "decision_repeated": "repeated",
    "decision_elsewhere": "elsewhere",
    "decision_legacy": "legacy",
}
"""Catalogue keys of the reasons why a decision is invalid, by rule. The default reason is that the decision
differs."""
_MAX_PATHS: Final = 3
"""Maximum number of files named in a text."""
_REPEATED: Final = frozenset(
    ("conflict", "forged", "handoff", "message", "outside", "request", "stalled", "unchecked")
)
"""The variants whose texts do not contain the number of times, so it follows them."""


def need_kind(need: Need, texts: Catalogue) -> str:
    """Return the kind of a need in one word. The kind of a request is the kind of its answer."""
    if need.kind == "request":
        return texts(f"request.kind.{RequestView(need.row).kind}")
    return texts(f"need.kind.{need.kind}")


def need_subject(need: Need, texts: Catalogue) -> str:
    """Return the subject of a need, such as the file of a handoff or the question of a request."""
    if need.kind == "request":
        return request_text(RequestView(need.row), texts)
    if need.kind in ("lost", "expired"):
        return need.against
    if need.kind in ("failed", "parked"):
        return need.row.actor
    if need.kind == "message":
        return sanitize(need.row.message)
    if need.kind == "overlap":
        return plan_text(path for each in read_plan(need.row).overlaps for path in each.paths)
    if need.kind == "predicted":
        return " ⚔ ".join(f"⎇ {sanitize(each)}" for each in read_prediction(need.row).names)
    return need.row.path.partition("/")[2] if need.row.zone == "handoff" else path_of(need.row)


def plan_text(paths: Iterable[str]) -> str:
    """Return the paths of a plan in one line, without repetitions."""
    found = [*dict.fromkeys(sanitize(each) for each in paths)]
    return ", ".join(found[:_MAX_PATHS] + ["…"] * (len(found) > _MAX_PATHS))


def need_text(need: Need, texts: Catalogue) -> str:
    """Return what happened, as a few words to show beside the subject."""
    variant = _variant(need)
    if variant in ("failed", "breaker", "budget"):
        return sanitize(need.row.message)
    if variant == "forged":
        text = _forged_text(need.row, texts)
    elif variant == "unreadable":
        why = texts(f"need.damage.{need.row.error}")
        key = "need.unreadable" if need.times > 1 else "need.unreadable_one"
        return texts(key, count=need.times, row=need.row.seq, why=why)
    elif variant == "unproven":
        return texts("need.unproven", what=check_result(read_end(need.row), texts))
    elif variant == "predicted":
        return _prediction_text(read_prediction(need.row).paths, texts)
    else:
        text = _complete(texts(f"need.{variant}", **_fields(need)), need, texts)
    return f"{text} ×{need.times}" if need.times > 1 and variant in _REPEATED else text


def need_sentence(need: Need, texts: Catalogue, *, max_subject: int | None = None) -> str:
    """Return the sentence about ``need`` and its agent, without a full stop.

    ``max_subject``: maximum cells of the subject, default: about 400 characters.
    """
    variant = RequestView(need.row).kind if need.kind == "request" else _variant(need)
    key = f"need.sentence.{variant}"
    subject = _sentence_subject(need, texts)
    sentence = texts(
        key if key in texts else "need.sentence.other",
        kind=need_kind(need, texts),
        subject=shorten(subject) if max_subject is None else fit_path(sanitize(subject), max_subject).strip(),
        what=need_text(need, texts),
        **_fields(need),
    )
    return _complete(sentence, need, texts)


def alert_text(needs: Sequence[Need | RemoteNeed], texts: Catalogue) -> str:
    """Return needs in one line. Only the first few are named."""
    named = [
        remote_sentence(need, texts)
        if isinstance(need, RemoteNeed)
        else need_sentence(need, texts, max_subject=SUBJECT_WIDTH)
        for need in needs[:MOST_NAMED]
    ]
    if len(needs) == 1:
        return named[0]
    more = ["…"] if len(needs) > MOST_NAMED else []
    return texts("alert.several", count=len(needs), needs=" · ".join(named + more))


def omitted_text(need: Need, texts: Catalogue) -> str:
    """Return a text about the omitted parts of the need's command, which are invalid. Empty if nothing is
    omitted."""
    return "".join(texts(f"need.omitted_{part}") for part in need.resume.omitted)


def restart_text(need: Need, texts: Catalogue) -> str:
    """Return which client a person starts again to continue the work of ``need``. Empty if a command
    continues it."""
    return texts("needs.restart", client=sanitize(need.client)) if need.client else ""


def _variant(need: Need) -> str:
    """Return the text key of ``need``: its kind, or a special case of its kind."""
    row = need.row
    if row.error in ("config_invalid", "settings_unsigned"):
        return "config" if row.error == "config_invalid" else "unsigned"
    if need.kind == "lost" and need.hint:
        return "lost_resumable"
    if need.kind == "parked":
        return _parking_variant(row)
    if need.kind == "budget" and row.tool == STOP_ROUTINE:
        return "routine_unpriced" if read_reason(row) == "unpriced" else "routine_budget"
    if need.kind == "outside":
        return _edit_variant(need)
    if need.kind == "conflict" and row.tool == REVERT_WORK:
        return "conflict_of_revert"
    if need.kind == "conflict" and side_of(row):
        return "conflict_of_landing"
    if need.kind == "conflict" and need.against in ("", row.actor):
        return "conflict_with_own" if need.against else "conflict_with_nothing"
    return need.kind


def _parking_variant(row: Row) -> str:
    parking = parking_of(row)
    if parking is None or parking.resets is None:
        return f"parked_{parking.held if parking is not None and parking.held else 'unknown'}"
    return "parked_until"


def _reset_of(row: Row) -> str:
    parking = parking_of(row)
    return "" if parking is None or parking.resets is None else reset_time(parking.resets, row.time)


def _edit_variant(need: Need) -> str:
    if need.paths > 1:
        return "outside_many"
    if need.row.sha256 is None:
        return "not_a_file" if need.row.error == NOT_A_FILE else "deleted"
    return "outside"


def _fields(need: Need) -> dict[str, object]:
    """Return the fields of the texts about a need."""
    return {
        "who": sanitize(need.row.actor),
        "against": sanitize(need.against),
        "count": need.paths - 1 if need.paths > 1 else need.times,
        "resume": sanitize(need.hint),
        "time": _reset_of(need.row) if need.kind == "parked" else "",
        "message": shorten(need.row.message),
        "tree": sanitize(side_of(need.row)),
        "into": sanitize(get_text(need.row.detail, INTO)),
    }


def _complete(text: str, need: Need, texts: Catalogue) -> str:
    """Return ``text`` with the omitted parts of the need's command, and the machine of an external edit."""
    if need.kind == "parked" and need.hint:
        text += texts("need.parked_lost", resume=sanitize(need.hint))
    elif need.kind == "parked" and need.client:
        text += texts("need.parked_gone")
    text += restart_text(need, texts) + omitted_text(need, texts)
    machine = need.row.detail.get(MACHINE) if need.kind == "outside" else None
    return (
        texts("need.on_machine", what=text, machine=sanitize(machine)) if isinstance(machine, str) else text
    )


def _forged_text(row: Row, texts: Catalogue) -> str:
    if row.tool == PEOPLE_LOST:
        return texts("need.people_lost")
    why = texts(f"need.flaw.{_FLAWS.get(row.error, 'differs')}")
    return texts("need.forged", who=sanitize(row.actor), what=sanitize(row.tool), why=why)


def _prediction_text(paths: Sequence[str], texts: Catalogue) -> str:
    """Return the text about two trees that would conflict in the files ``paths``."""
    shown = ", ".join(sanitize(each) for each in paths[:_MAX_PATHS])
    more = len(paths) - _MAX_PATHS
    return texts("need.predicted_many" if more > 0 else "need.predicted", paths=shown, count=more)


def _sentence_subject(need: Need, texts: Catalogue) -> str:
    if need.kind == "failed":
        return need.row.message
    if need.row.zone in ("board", "lease"):
        return texts("watch.board", name=need.row.path)
    return need_subject(need, texts)
