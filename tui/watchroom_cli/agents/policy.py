"""The command policy: explain the policy's verdict on a call, and list and revoke grants."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast
from zoneinfo import ZoneInfo

from watchroom.errors import ConfigInvalid
from watchroom.features.config.rows import parse_config
from watchroom.features.policy import grants
from watchroom.features.policy.rules import (
    PolicyDecision,
    PolicyRules,
    PolicySubject,
    RuleCheck,
    dump_rule,
    policy_subject,
)
from watchroom.features.requests.rows import PendingCall, Request, parse_json
from watchroom.features.trees.worktrees import find_worktrees
from watchroom.kernel.checkout.layout import CONTROL
from watchroom.kernel.rules.row_files import CONFIG_PATH
from watchroom.model import HUMAN_PREFIX, Json, timestamp
from watchroom.texts import Catalogue, Language, catalogue
from watchroom.workspace import Workspace
from watchroom_tui.presentation.sanitize import sanitize
from watchroom_tui.presentation.usage import WrongUsage
from watchroom_tui.services import person_calls

from watchroom_cli.acting_person import act_as_person, name_of_this_person
from watchroom_cli.arguments.time_argument import nanoseconds
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.output.table import format_table

if TYPE_CHECKING:
    from watchroom.features.calls.toolbox import Toolbox
    from watchroom.features.policy.plain_command import Doubt
    from watchroom.features.policy.reads import GrantState


def declare_policy(parser: ArgumentParser, texts: Catalogue) -> None:
    help_text = texts("cli.policy.actions.help")
    parser.add_argument("action", choices=["explain", "grants", "revoke"], help=help_text)
    add_workspace_argument(parser, texts)
    parser.add_argument("agent", nargs="?", metavar="AGENT|GRANT", help=texts("cli.argument.policy_agent"))
    parser.add_argument("tool", nargs="?")
    parser.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help=texts("cli.argument.policy_arguments")
    )
    parser.add_argument("--folder", metavar="DIR", help=texts("cli.argument.policy_folder"))
    parser.add_argument("--time", metavar="TIME", help=texts("cli.argument.policy_time"))
    parser.add_argument("--key", default="", metavar="FILE", help=texts("cli.argument.key"))
    parser.add_argument("--as", dest="person", metavar="NAME", help=texts("cli.argument.as"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))


def run_policy(args: Namespace, texts: Catalogue) -> int:
    if args.action == "grants":
        return _list_grants(args, texts)
    if args.action == "revoke":
        return _revoke_grant(args, texts)
    if args.agent is None or args.tool is None:
        raise WrongUsage(texts("cli.policy.explain.needs"))
    return _explain(args, texts)


def _list_grants(args: Namespace, texts: Catalogue) -> int:
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        states = workspace.grants.list_active(args.agent or "")
        words = catalogue(args.language)
    table = [describe_state(each, words) for each in states]
    if args.json:
        print_json(table, indent=2)
        return 0
    for line in format_table(table, texts) or [texts("cli.policy.no_grants")]:
        print(line)
    return 0


def describe_state(state: GrantState, texts: Catalogue) -> dict[str, Json]:
    """Return ``state`` as an entry of a table. ``texts``: the core's texts."""
    last, expires = state.last_use, state.grant.expires
    return {
        "grant": state.row.seq,
        "by": state.row.actor.removeprefix(HUMAN_PREFIX),
        "uses_left": state.uses_left,
        "until": timestamp(expires) if expires is not None else None,
        "last_use": last.timestamp if last is not None else None,
        "covers": grants.describe_grant(state.grant, texts),
    }


def _revoke_grant(args: Namespace, texts: Catalogue) -> int:
    if args.agent is None or not args.agent.isdecimal() or args.tool is not None:
        raise WrongUsage(texts("cli.policy.revoke.needs"))
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        call = person_calls.revoke_grant(int(args.agent))
        result = act_as_person(workspace, args.person or name_of_this_person(), call, key=args.key)
    print_json(result, indent=2)
    return 0 if result["success"] else 1


def _find_grant(
    workspace: Workspace, agent: str, tool: str, arguments: Mapping[str, Json], folder: str
) -> GrantState | None:
    """Return a grant that covers a call. A grant for one session is checked with a call of this session."""
    file = grants.find_file(tool, arguments)
    place = {
        "folder": os.path.realpath(folder) if folder else "",
        "target": os.path.realpath(file) if file else "",
    }
    call = PendingCall("call", tool, json.dumps(arguments))
    request = Request("approve", calls=(call,), metadata={grants.PLACE: place})
    for state in workspace.grants.list_active(agent):
        path = f"{state.grant.session or f'{agent}/mcp'}/call"
        if grants.covers(state.grant, path, request):
            return state
    return None


def _explain(args: Namespace, texts: Catalogue) -> int:
    arguments = _parse_arguments(args.arguments, texts)
    with Workspace.open(args.dir, create=False, scan=False) as workspace:
        _report_invalid(workspace, args.language, texts)
        toolbox = _toolbox_of(workspace, args.agent)
        now = nanoseconds(args.time, texts) if args.time else workspace.journal.now()
        if args.folder:
            folder = os.path.abspath(args.folder)
            trees = find_worktrees(folder)
            subject = policy_subject(arguments, folder=folder, worktrees=trees, resolve=os.path.realpath)
            decision = workspace.policy.decide(toolbox.actor, args.tool, subject, now)
        else:
            subject = policy_subject(arguments)
            decision = toolbox.decide_policy(args.tool, arguments, now)
        rules = workspace.config.policy
        found = None
        if decision.verdict == "ask":
            found = _find_grant(workspace, toolbox.actor, args.tool, arguments, args.folder or "")
    if args.json:
        number = found.row.seq if found is not None else None
        print_json({**_as_json(args, subject, rules, decision, now), "grant": number}, indent=2)
    else:
        print(_verdict_text(args.agent, rules, decision, texts))
        if found is not None:
            covers = grants.describe_grant(found.grant, catalogue(args.language))
            by = found.row.actor.removeprefix(HUMAN_PREFIX)
            print(sanitize(texts("cli.policy.granted", grant=found.row.seq, by=by, covers=covers)))
        if decision.tested is not None:
            would = texts(f"cli.policy.would.{decision.tested.rule.verdict}")
            print(texts("cli.policy.tested", rule=decision.tested.label, would=would))
        local = datetime.fromtimestamp(now / 1e9, ZoneInfo(rules.time_zone))
        table = [_table_row(check, subject, local, texts) for check in decision.checks]
        for line in format_table(table, texts):
            print(line)
    return 0


def _parse_arguments(text: str, texts: Catalogue) -> Mapping[str, Json]:
    try:
        arguments = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise WrongUsage(texts("cli.policy.not_json")) from error
    if not isinstance(arguments, dict):
        raise WrongUsage(texts("cli.policy.not_json"))
    return cast("Mapping[str, Json]", arguments)


def _toolbox_of(workspace: Workspace, agent: str) -> Toolbox:
    if agent.startswith(HUMAN_PREFIX):
        return workspace.tools_for_human(agent.removeprefix(HUMAN_PREFIX))
    return workspace.tools(agent)


def _report_invalid(workspace: Workspace, language: Language, texts: Catalogue) -> None:
    """Print the error in the current settings file, if the file is invalid."""

    path = Path(workspace.root, CONTROL, CONFIG_PATH)
    try:
        parse_config(path.read_text(encoding="utf-8", errors="replace"))
    except ConfigInvalid as error:
        print(f"watchroom: {error.message(language)} {texts('cli.policy.invalid')}", file=sys.stderr)


def _verdict_text(agent: str, rules: PolicyRules, decision: PolicyDecision, texts: Catalogue) -> str:
    if agent.startswith(HUMAN_PREFIX):
        return texts("cli.policy.person")
    if not rules.rules:
        return texts("cli.policy.no_rules")
    if not decision.number:
        return texts("cli.policy.no_match")
    return texts(f"cli.policy.{decision.verdict}", rule=decision.label)


def _table_row(
    check: RuleCheck, subject: PolicySubject, local: datetime, texts: Catalogue
) -> dict[str, Json]:
    return {
        "rule": check.number,
        "name": check.rule.name,
        "verdict": texts(f"cli.policy.verdict.{check.rule.verdict}"),
        "why": _reason(check, subject, local, texts),
    }


def _reason(check: RuleCheck, subject: PolicySubject, local: datetime, texts: Catalogue) -> str:
    doubt = _doubt_text(check.doubt, texts) if check.doubt else ""
    if not check.mismatch:
        matches = texts("cli.policy.matches_as_test" if check.is_test else "cli.policy.matches")
        return texts("cli.policy.matches_in_doubt", matches=matches, doubt=doubt) if doubt else matches
    entry = dump_rule(check.rule).get(check.mismatch.partition("_")[0], "")
    wanted = ", ".join(entry) if isinstance(entry, list) else str(entry)
    is_allowing_path = check.mismatch == "path" and check.rule.verdict == "allow"
    return texts(
        f"cli.policy.mismatch.{'path_of_all' if is_allowing_path else check.mismatch}",
        wanted=wanted,
        doubt=doubt,
        paths=", ".join(subject.paths),
        now=f"{local:%H:%M} {local.tzname()}",
        day=texts(f"cli.policy.day.{local.weekday()}"),
    )


def _doubt_text(doubt: Doubt, texts: Catalogue) -> str:
    text = texts(f"cli.policy.doubt.{doubt.kind}")
    return texts("cli.policy.doubt_at", doubt=text, text=repr(doubt.text)) if doubt.text else text


def _as_json(
    args: Namespace, subject: PolicySubject, rules: PolicyRules, decision: PolicyDecision, now: int
) -> dict[str, Json]:
    tested = decision.tested
    checks: list[Json] = [
        {
            "rule": check.number,
            **cast("Mapping[str, Json]", dump_rule(check.rule)),
            "mode": "test" if check.is_test else "enforce",
            "matches": not check.mismatch,
            "mismatch": check.mismatch or None,
            "doubt": {"kind": check.doubt.kind, "text": check.doubt.text} if check.doubt else None,
        }
        for check in decision.checks
    ]
    return {
        "agent": args.agent,
        "tool": args.tool,
        "paths": list(subject.paths),
        "command": subject.command,
        "time": timestamp(now),
        "time_zone": rules.time_zone,
        "mode": rules.mode,
        "verdict": decision.verdict,
        "rule": decision.number or None,
        "name": decision.name,
        "would": {"rule": tested.number, "name": tested.rule.name, "verdict": tested.rule.verdict}
        if tested
        else None,
        "rules": checks,
    }
