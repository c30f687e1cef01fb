"""GitHub and GitLab: the address of a remote's project, and pull requests by means of ``gh`` and ``glab``.

No shell is used. A value is given in the same word as its option, so that a text never becomes an option.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import quote, urlencode

from watchroom.kernel.rules.details import get_list, get_object, get_text
from watchroom.model import Json
from watchroom.platform.child_process import ChildResult, run_child

HostKind: TypeAlias = Literal["github", "gitlab"]
RequestStatus: TypeAlias = Literal["open", "merged", "closed"]
CheckStatus: TypeAlias = Literal["failed", "running", "passed"]
CHECK_STATUSES: Final[tuple[CheckStatus, ...]] = get_args(CheckStatus)

_SECONDS: Final = 60.0
"""Timeout of a call of ``gh`` or ``glab``."""
_MAX_OUTPUT: Final = 4 * 1024 * 1024
_MAX_REASON: Final = 500
_MAX_CHECKS: Final = 500
_PROGRAMS: Final[Mapping[HostKind, str]] = {"github": "gh", "gitlab": "glab"}
_URL: Final = re.compile(r"[a-z+]+://(?:[^@/]*@)?([^:/]+)(?::\d+)?/(.+)")
_SCP: Final = re.compile(r"(?:[^@/:]+@)?([^:/]+):(?!//)(.+)")
_PROJECT: Final = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+")
_CREDENTIALS: Final = re.compile(r"://[^@/\s]+@")
_ADDRESS: Final = re.compile(r"https?://[!-~]+")
_PASSED: Final = frozenset({"SUCCESS", "NEUTRAL", "SKIPPED"})
_WAITING: Final = frozenset({"PENDING", "EXPECTED"})
_PIPELINES: Final[Mapping[str, CheckStatus]] = {
    "success": "passed",
    "skipped": "passed",
    "failed": "failed",
    "canceled": "failed",
}
"""The statuses of ended pipelines at GitLab. A pipeline with any other status has not ended."""
_STATES: Final[Mapping[str, RequestStatus]] = {
    "OPEN": "open",
    "OPENED": "open",
    "LOCKED": "open",
    "MERGED": "merged",
    "CLOSED": "closed",
}


class CodeHost(NamedTuple):
    """A project at a host.

    - ``name``: the host, such as ``github.com``.
    - ``project``: such as ``owner/project``.
    """

    kind: HostKind
    name: str
    project: str

    @property
    def program(self) -> str:
        """The program that opens pull requests there: ``gh`` or ``glab``."""
        return _PROGRAMS[self.kind]

    @property
    def url(self) -> str:
        """The address of the project."""
        return f"https://{self.name}/{self.project}"


class HostCheck(NamedTuple):
    """A check of a pull request at its host."""

    name: str
    status: CheckStatus


class HostRequest(NamedTuple):
    """A pull request at its host."""

    url: str
    status: RequestStatus
    checks: tuple[HostCheck, ...] = ()


class HostAnswer(NamedTuple):
    """The answer of a host's program.

    - ``request``: None if there is no pull request, or the program failed.
    - ``reason``: the reason for a failure, as one line; empty after a success.
    """

    request: HostRequest | None = None
    reason: str = ""


def parse_remote(url: str) -> CodeHost | None:
    """Return the project of the remote at ``url``; None if its host is not known."""
    found = _URL.fullmatch(url) if "://" in url else _SCP.fullmatch(url)
    if found is None:
        return None
    name, project = found[1].lower(), found[2].strip("/").removesuffix(".git")
    if not _HOST.fullmatch(name) or not _PROJECT.fullmatch(project):
        return None
    labels = name.split(".")
    for kind in _PROGRAMS:
        if kind in labels:
            return CodeHost(kind, name, project)
    return None


def compare_address(host: CodeHost, into: str, branch: str) -> str:
    """Return the address of the page that opens a pull request of ``branch`` into ``into``."""
    if host.kind == "github":
        return f"{host.url}/compare/{quote(into)}...{quote(branch)}?expand=1"
    fields = {"source_branch": branch, "target_branch": into}
    query = urlencode({f"merge_request[{name}]": value for name, value in fields.items()})
    return f"{host.url}/-/merge_requests/new?{query}"


def is_installed(host: CodeHost) -> bool:
    """Return whether the program of ``host`` is installed."""
    return shutil.which(host.program) is not None


def create_request(
    host: CodeHost, folder: str, *, branch: str, into: str, title: str, body: str, is_draft: bool
) -> HostAnswer:
    """Open a pull request of the pushed ``branch`` into ``into``. ``folder``: the program's working
    directory."""
    given = b""
    if host.kind == "github":
        options = [f"--repo={host.name}/{host.project}", f"--base={into}", f"--head={branch}"]
        options += [f"--title={title}", "--body-file=-"]
        command, given = ["gh", "pr", "create", *options], body.encode()
    else:
        options = [f"--repo={host.url}", f"--target-branch={into}", f"--source-branch={branch}"]
        # The description "-" would open an editor.
        options += [f"--title={title}", f"--description={body}\n", "--yes"]
        command = ["glab", "mr", "create", *options]
    done = _run([*command, *(["--draft"] if is_draft else [])], folder, given)
    if isinstance(done, str):
        return HostAnswer(None, done)
    # The title is printed too, and can have an address.
    printed = _ADDRESS.findall(done.output.decode("utf-8", "replace"))
    own = [each for each in printed if each.startswith(f"{host.url}/")]
    return HostAnswer(HostRequest(own[-1] if own else "", "open"))


def read_request(host: CodeHost, folder: str, name: str) -> HostAnswer:
    """Return the pull request with the branch or address ``name``, and the state of its checks."""
    if host.kind == "github":
        options = [f"--repo={host.name}/{host.project}", "--json=state,statusCheckRollup,url"]
        done = _run(["gh", "pr", "view", *options, "--", name], folder)
    else:
        done = _run(["glab", "mr", "view", f"--repo={host.url}", "--output=json", "--", name], folder)
    if isinstance(done, str):
        return HostAnswer(None, done)
    try:
        found: Json = json.loads(done.output)
    except (ValueError, RecursionError):
        found = None
    fields = found if isinstance(found, Mapping) else {}
    status = _STATES.get(get_text(fields, "state").upper())
    if status is None:
        return HostAnswer(None, f"{host.program}: ?")
    if host.kind == "github":
        checks = [*map(_read_check, get_list(fields, "statusCheckRollup")[:_MAX_CHECKS])]
        return HostAnswer(HostRequest(_address_of(fields, "url"), status, tuple(checks)))
    pipeline = get_text(get_object(fields, "head_pipeline") or get_object(fields, "pipeline"), "status")
    made = (HostCheck("pipeline", _PIPELINES.get(pipeline, "running")),) if pipeline else ()
    return HostAnswer(HostRequest(_address_of(fields, "web_url"), status, made))


def _read_check(given: Json) -> HostCheck:
    """Return a check run or a status of a commit at GitHub."""
    fields = given if isinstance(given, Mapping) else {}
    name = get_text(fields, "name") or get_text(fields, "context") or "?"
    # A check run that has not ended has no conclusion.
    result = (get_text(fields, "conclusion") or get_text(fields, "state")).upper()
    if not result or result in _WAITING:
        return HostCheck(name, "running")
    return HostCheck(name, "passed" if result in _PASSED else "failed")


def _address_of(fields: Mapping[str, Json], name: str) -> str:
    """Return the address in the field ``name`` of ``fields``, empty if it is not valid."""
    address = get_text(fields, name)
    return address if _ADDRESS.fullmatch(address) else ""


def _run(command: Sequence[str], folder: str, given: bytes = b"") -> ChildResult | str:
    """Run a program of a host. Return the reason if it fails."""
    quiet = ("GH_PROMPT_DISABLED", "NO_PROMPT", "GLAB_NO_PROMPT", "NO_COLOR")
    environment = {**os.environ, **dict.fromkeys(quiet, "1")}
    try:
        done = run_child(
            command,
            given=given,
            timeout=_SECONDS,
            max_output=_MAX_OUTPUT,
            folder=folder,
            environment=environment,
        )
    except TimeoutError:
        return f"{command[0]}: {_SECONDS:.0f} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror or '?'}"
    return done if done.status == 0 else say_error(done)


def say_error(done: ChildResult) -> str:
    """Return what a program printed on standard error as one line, without control characters and the
    passwords of addresses."""
    printed = done.errors.decode("utf-8", "replace")
    shown = _CREDENTIALS.sub("://", printed)
    text = " ".join("".join(each if each.isprintable() else " " for each in shown).split())
    return text[-_MAX_REASON:] or f"exit code {done.status}"
