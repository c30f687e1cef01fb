"""The result of comparing a journal with its seals, in words."""

from __future__ import annotations

from dataclasses import dataclass

from watchroom.features.policy.shown_commands import quote_word
from watchroom.history.seal import Anchor, Finding, SealReport
from watchroom.model import Json, timestamp
from watchroom.texts import Catalogue

from watchroom_tui.formatters.local_time import local_time
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.shown_place import place_word


@dataclass(frozen=True, slots=True)
class SealLines:
    """Lines about agreement, and lines about signs of tampering."""

    agrees: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def seal_lines(report: SealReport, root: str, texts: Catalogue) -> SealLines:
    """Return ``report`` on the workspace at ``root`` as lines. Return no lines if the journal was never
    sealed."""
    newest, agrees = report.newest, []
    if newest is not None:
        by = _signed(report, texts)
        places = dict.fromkeys(_kept(each, texts) for each in report.anchors)
        kept = "; ".join(places) or texts("cli.seal.kept_nowhere")
        row = newest.seal.seq
        agrees.append(texts("cli.seal.sealed", row=row, by=by, kept=kept, since=report.since))
    agrees += [texts("cli.seal.missing", path=sanitize(each)) for each in report.missing]
    findings = (_format_finding(each, sanitize(root), texts) for each in report.findings)
    return SealLines(tuple(agrees), tuple(dict.fromkeys(findings)))


def seal_as_json(report: SealReport) -> dict[str, Json]:
    """Return ``report`` as JSON."""
    newest = report.newest
    return {
        "workspace": report.workspace,
        "rows": report.rows,
        "sealed": newest and _signed_as_json(newest.seal.seq, newest.seal.size, newest.text),
        "signer": report.signer,
        "person": report.person,
        "is_known": bool(report.person) or report.is_machine,
        "since": report.since,
        "missing": [*report.missing],
        "anchors": [_anchor_as_json(each) for each in report.anchors],
        "findings": [
            {
                "kind": each.kind,
                "after": each.after,
                "until": each.until,
                "rows": each.rows,
                "sealed": each.sealed,
                "key": each.key,
                "person": each.person,
                "anchor": each.anchor and _anchor_as_json(each.anchor),
            }
            for each in report.findings
        ],
    }


def _signed(report: SealReport, texts: Catalogue) -> str:
    """Return the signer of the newest seal, as a sentence."""
    if not report.signer:
        return texts("cli.seal.unsigned")
    if report.person:
        return texts("cli.seal.signed", signer=sanitize(report.person))
    name = "cli.seal.signed_machine" if report.is_machine else "cli.seal.signed_unknown"
    return texts(name, fingerprint=report.signer)


def _kept(anchor: Anchor, texts: Catalogue) -> str:
    seal = anchor.signed.seal
    time = local_time(seal.time)
    row = seal.seq
    if anchor.kind in ("state", "place"):
        return texts("cli.seal.kept", row=row, time=time)
    path = sanitize(anchor.path)
    names = {"git": "cli.seal.in_git", "published": "cli.seal.published", "decision": "cli.seal.decided"}
    name = names.get(anchor.kind, "cli.seal.given")
    return texts(name, row=row, time=time, path=path)


def _format_finding(finding: Finding, root: str, texts: Catalogue) -> str:
    where = sanitize(finding.anchor.path) if finding.anchor else ""
    if finding.kind == "changed":
        return texts("cli.seal.changed", after=finding.after, until=finding.until)
    if finding.kind == "truncated":
        return texts("cli.seal.truncated", rows=finding.rows, sealed=finding.sealed, where=where)
    if finding.kind == "forked":
        return texts("cli.seal.forked", after=finding.after, until=finding.until, where=where)
    if finding.kind == "replaced":
        is_place = finding.anchor is not None and finding.anchor.kind == "place"
        name = "cli.seal.replaced" if is_place else "cli.seal.other"
        return texts(name, sealed=finding.sealed, where=where, root=place_word(root))
    if finding.kind in ("signer", "machine"):
        name = "cli.seal.signer" if finding.kind == "signer" else "cli.seal.machine"
        key, person = quote_word(finding.key, "FINGERPRINT"), sanitize(finding.person)
        return texts(name, until=finding.until, fingerprint=key, person=person, root=place_word(root))
    return texts("cli.seal.signature", until=finding.until)


def _anchor_as_json(anchor: Anchor) -> dict[str, Json]:
    seal = anchor.signed.seal
    return {
        "kind": anchor.kind,
        "path": anchor.path,
        "row": seal.seq,
        "size": seal.size,
        "root": seal.root.hex(),
        "time": timestamp(seal.time),
    }


def _signed_as_json(row: int, size: int, text: str) -> dict[str, Json]:
    return {"row": row, "size": size, "checkpoint": text}
