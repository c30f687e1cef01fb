"""The command traces: send the actions of agents to OpenTelemetry as spans, or print them."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import Final

from watchroom.agents.clients.registry import PROVIDERS
from watchroom.features.alerts.rules import is_web_address
from watchroom.history.spans import SpanReader, SpanRecord
from watchroom.kernel.journal import Journal
from watchroom.model import Json
from watchroom.texts import Catalogue
from watchroom_tui.presentation.usage import WrongUsage

from watchroom_cli.arguments.time_argument import moment, open_journal
from watchroom_cli.arguments.workspace_argument import add_workspace_argument
from watchroom_cli.command import print_json
from watchroom_cli.history.span_exporter import TRACES_PATH, SpanExporter
from watchroom_cli.output.stream import is_output_lost

ENDPOINT_VARIABLE: Final = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable with the receiver's address, without `TRACES_PATH`."""
TRACES_VARIABLE: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
"""The variable with the full address. It takes precedence."""
_MAX_BATCH: Final = 512
"""Max spans per request. The limit with texts is an eighth, because receivers limit the size of requests."""
_CHECK_SECONDS: Final = 1.0


def declare_traces(parser: ArgumentParser, texts: Catalogue) -> None:
    add_workspace_argument(parser, texts)
    parser.add_argument("--endpoint", metavar="URL", help=texts("cli.argument.traces_endpoint"))
    parser.add_argument("--follow", action="store_true", help=texts("cli.argument.traces_follow"))
    parser.add_argument("--since", metavar="SEQ | TIME", help=texts("cli.argument.traces_since"))
    parser.add_argument("--content", action="store_true", help=texts("cli.argument.traces_content"))
    parser.add_argument("--json", action="store_true", help=texts("cli.argument.traces_json"))


def run_traces(args: Namespace, texts: Catalogue) -> int:
    endpoint = args.endpoint or _endpoint_of(os.environ)
    if args.json and args.endpoint:
        raise WrongUsage(texts("cli.traces.either"))
    if not args.json and not is_web_address(endpoint):
        raise WrongUsage(texts("cli.traces.endpoint", variable=ENDPOINT_VARIABLE))
    with ExitStack() as stack:
        journal = stack.enter_context(closing(open_journal(args.dir)))
        since = moment(journal, args.since, texts) if args.since is not None else 0
        take: Callable[[Sequence[SpanRecord]], None] = _print_spans
        if not args.json:
            take = stack.enter_context(closing(SpanExporter(endpoint))).send
        reader = SpanReader(journal, since=since, with_content=args.content, providers=PROVIDERS)
        sent = 0
        try:
            for spans, row in _batches(
                journal, reader, args.follow, _MAX_BATCH // (8 if args.content else 1)
            ):
                if spans:
                    take(spans)
                sent, since = sent + len(spans), max(since, row)
                if args.json and is_output_lost():
                    break
        except KeyboardInterrupt:
            # ctrl+c is the normal end of --follow.
            if not args.follow:
                raise
    if not args.json:
        print(texts("cli.traces.sent", spans=sent, row=since))
    return 0


def _endpoint_of(environ: Mapping[str, str]) -> str:
    """Return the address for spans in ``environ``, empty if not set."""
    base = environ.get(ENDPOINT_VARIABLE, "")
    return environ.get(TRACES_VARIABLE, "") or (base and base.rstrip("/") + TRACES_PATH)


def _batches(
    journal: Journal, reader: SpanReader, follow: bool, max_spans: int
) -> Iterator[tuple[list[SpanRecord], int]]:
    """Yield batches of spans from ``reader``, each with the number of the last complete row.

    - ``max_spans``: max spans per batch.
    - ``follow``: whether to continue with new rows until the output loses its reader.
    """
    with closing(journal.changes()) as changes:
        while True:
            spans = reader.read()
            while batch := list(islice(spans, max_spans)):
                # The last row is not complete, because it may have more spans.
                yield batch, batch[-1].row - 1
            yield [], reader.row
            if not follow or is_output_lost():
                return
            changes.wait(_CHECK_SECONDS)


def _print_spans(spans: Sequence[SpanRecord]) -> None:
    for span in spans:
        print_json(_as_json(span))


def _as_json(span: SpanRecord) -> dict[str, Json]:
    """Return ``span`` without empty fields."""
    fields: dict[str, Json] = {**span._asdict(), "attributes": dict(span.attributes)}
    return {name: value for name, value in fields.items() if value not in ("", (), False)}
