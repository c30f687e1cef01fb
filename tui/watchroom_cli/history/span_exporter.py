"""Send spans to an OpenTelemetry receiver with the official exporter: OTLP over HTTP (extra ``otel``)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from watchroom import __version__
from watchroom.errors import ExtraMissing, WatchroomError
from watchroom.history.spans import SpanRecord
from watchroom_tui.presentation.sanitize import sanitize

_SERVICE: Final = "watchroom"
TRACES_PATH: Final = "/v1/traces"
_LOGGER: Final = "opentelemetry.exporter"
_MAX_REASON_CHARACTERS: Final = 500


class SpansNotSent(WatchroomError):
    """The receiver did not accept spans after all retries.

    Values: ``endpoint``, ``reason``, ``since`` (the row after which to resume).
    """

    code = "spans_not_sent"
    package: ClassVar[str] = "watchroom_tui.texts"


class SpanExporter:
    """Sends spans to a receiver.

    - ``endpoint``: the receiver's address. `TRACES_PATH` is added to an address without a path.

    Headers, certificates, compression and the timeout come from the environment variables
    ``OTEL_EXPORTER_OTLP_…``. Raises `ExtraMissing`.
    """

    def __init__(self, endpoint: str) -> None:
        try:
            import requests
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import OTELResourceDetector, Resource
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError as error:
            package = "opentelemetry-exporter-otlp-proto-http"
            raise ExtraMissing(extra="otel", package=package) from error
        answers: list[str] = []

        class Session(requests.Session):
            def send(self, request: requests.PreparedRequest, **given: Any) -> requests.Response:
                try:
                    response = super().send(request, **given)
                except requests.RequestException as error:
                    answers.append(str(error))
                    raise
                answers.append(f"{response.status_code} {response.reason}")
                if 300 <= response.status_code < 400:
                    # The exporter does not follow redirects, and counts them as success.
                    raise requests.TooManyRedirects(answers[-1])
                return response

        self._answers = answers
        self.endpoint: Final = _address(endpoint)
        self._exporter = OTLPSpanExporter(self.endpoint, session=Session())
        own = Resource({"service.name": _SERVICE, "service.version": __version__})
        self._resource = own.merge(OTELResourceDetector().detect())
        self._scope = InstrumentationScope(_SERVICE, __version__)

    def send(self, spans: Sequence[SpanRecord]) -> None:
        """Send ``spans``, with the exporter's retries. Raise `SpansNotSent`."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        self._answers.clear()
        with _collect_log() as messages:
            result = self._exporter.export([self._readable(span) for span in spans])
        if result is not SpanExportResult.SUCCESS:
            # Prefer the receiver's answer, because the exporter's last message often only reports a timeout.
            reasons = [*messages, *self._answers]
            reason = sanitize(reasons[-1][:_MAX_REASON_CHARACTERS]) if reasons else "-"
            raise SpansNotSent(endpoint=self.endpoint, reason=reason, since=spans[0].row - 1)

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, span: SpanRecord):  # type: ignore[no-untyped-def]  # its types come with the extra
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: str, *, is_remote: bool = False) -> SpanContext:
            sampled = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(int(span.trace_id, 16), int(span_id, 16), is_remote, sampled)

        return ReadableSpan(
            span.name,
            context(span.span_id),
            context(span.parent_id, is_remote=span.is_parent_remote) if span.parent_id else None,
            self._resource,
            span.attributes,
            links=[Link(context=context(each)) for each in span.links],
            kind=SpanKind[span.kind.upper()],
            status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
            start_time=span.start,
            end_time=span.end,
            instrumentation_scope=self._scope,
        )


def _address(endpoint: str) -> str:
    """Return the address for posting spans. Add `TRACES_PATH` to an address without a path."""
    is_bare = urlsplit(endpoint).path in ("", "/")
    return endpoint.rstrip("/") + TRACES_PATH if is_bare else endpoint


class _Records(logging.Handler):
    """Collects log messages."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        self._messages.append(record.getMessage())


@contextmanager
def _collect_log() -> Iterator[list[str]]:
    """Collect the exporter's log messages. The exporter logs errors instead of raising them."""
    messages: list[str] = []
    handler, logger = _Records(messages), logging.getLogger(_LOGGER)
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
