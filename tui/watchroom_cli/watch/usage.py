"""The command usage: print the tokens that agents used, and the cost."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import closing

from watchroom.features.budgets.reads import USAGE_KEYS, summarize_usage
from watchroom.features.budgets.rows import UsageTotal
from watchroom.features.config.registry import Registry
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.formatters.labels import cost_text
from watchroom_tui.formatters.local_time import local_date

from watchroom_cli.arguments.time_argument import open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import add_utc_argument, print_json
from watchroom_cli.output.table import format_table

_TOTAL = "total"


def declare_usage(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--by", choices=USAGE_KEYS, default="agent", help=texts("cli.argument.usage_by"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.json"))
    add_utc_argument(parser, texts)


def run_usage(args: Namespace, texts: Catalogue) -> int:
    with closing(open_journal(args.dir)) as journal:
        agents = Registry(journal).current().agents
        found = summarize_usage(
            journal,
            args.by,
            day_of=local_date,
            task_of=lambda agent: agents[agent].task if agent in agents else "",
        )
    if args.json:
        entries = [{args.by: key, **_as_json(used)} for key, used in found.parts.items()]
        print_json({"by": args.by, "parts": entries, _TOTAL: _as_json(found.total)}, indent=2)
        return 0
    if not found.parts:
        print(texts("cli.usage.none"))
        return 0
    table = [{args.by: key, **_as_entry(used)} for key, used in found.parts.items()]
    table.append({args.by: texts("usage.total"), **_as_entry(found.total)})
    print("\n".join(format_table(table, texts)))
    if found.total.unpriced:
        print(texts("cli.usage.unpriced", tokens=found.total.unpriced))
    return 0


def _as_json(used: UsageTotal) -> dict[str, Json]:
    return {
        "input": used.input,
        "output": used.output,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "cost": used.known_cost,
        "unpriced": used.unpriced,
        "priced_by": used.priced_by,
    }


def _as_entry(used: UsageTotal) -> dict[str, Json]:
    return {
        "input": used.input,
        "output": used.output,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "cost": cost_text(used),
        "priced_by": used.priced_by,
    }
