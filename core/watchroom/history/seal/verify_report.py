"""Checks a proof that ``watchroom report --format proof`` wrote: ``python verify_report.py FILE OWNER``.

It needs Python and ssh-keygen, and nothing else of Watchroom, so you can copy this file. OWNER is the
fingerprint of the owner's key (``SHA256:…``, as ``watchroom person list`` and ``ssh-keygen -l`` print it).
Get it from the owner. The program prints what is proven, and exits with status 1 if anything is wrong.

It does not check touches of FIDO2 devices or limits of people. A proof may leave out that a person was
revoked before the range.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

COLUMNS: Final = (
    *("seq", "time", "actor", "tool", "zone", "path", "version", "base", "outcome", "error"),
    *("message", "sha256", "size", "detail"),
)
UNSIGNED: Final = {"signed", "signature", "idempotency_key", "traceparent", "call_began", "call", "operation"}
DECISIONS: Final[dict[str, set[str]]] = {
    "answer": {"answer_request"},
    "grant": {"grant_calls"},
    "person": {"add_person", "revoke_person"},
    "settings": {"sign_settings"},
    "budget": {"set_budget"},
    "settle": {"resolve_conflict", "dismiss_conflict", "revert_outside_edit"},
    "revert": {"revert_work"},
    "resume": {"resume_agent"},
    "release": {"release_agents"},
    "end_task": {"end_task"},
    "seen": {"mark_as_seen"},
    "routine": {"add_routine"},
    "run_routine": {"run_routine"},
}
"""For each effect of a row, the tools with which people can cause it."""
OWNERS: Final = {"person", "settings"}
FORMATS: Final = {"watchroom-decision/2", "watchroom-decision/1"}
"""The accepted formats of decisions. The second format has no position. Its decisions count until somebody is
enrolled in the first format."""


CHECKPOINT: Final = re.compile(
    r"watchroom/(?P<workspace>[0-9a-f]{32})\n(?P<size>\d+)\n(?P<root>\S+)\nseq (?P<seq>\d+)\ntime \d+\n"
)


class Wrong(Exception):
    """The proof is wrong, or proves nothing."""


def encode(row: list[Any]) -> bytes:
    """Return the bytes of the leaf of ``row``."""
    parts = []
    for value in row:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, int):
            parts.append(b"i%de" % value)
        else:
            data = value.encode("utf-8", "surrogatepass")
            parts.append(b"%d:%b" % (len(data), data))
    return b"".join(parts)


def sha256(data: bytes) -> bytes:
    """Return the SHA-256 hash of ``data``."""
    return hashlib.sha256(data).digest()


def leaf_of(row: list[Any]) -> bytes:
    """Return the hash of a row's leaf (RFC 6962, section 2.1)."""
    return sha256(b"\x00" + encode(row))


def root_after(start: dict[str, Any], leaves: list[bytes]) -> tuple[bytes, int]:
    """Return the root and the size of the tree ``start`` after adding ``leaves``."""
    size, roots = start["size"], [bytes.fromhex(each) for each in start["roots"]]
    if len(roots) != size.bit_count():
        raise Wrong("the start of the tree is invalid")
    for leaf in leaves:
        left = size
        while left & 1:
            leaf, left = sha256(b"\x01" + roots.pop() + leaf), left >> 1
        roots.append(leaf)
        size += 1
    root = roots.pop() if roots else sha256(b"")
    while roots:
        root = sha256(b"\x01" + roots.pop() + root)
    return root, size


def is_included(proof: list[str], leaf: bytes, index: int, size: int, root: bytes) -> bool:
    """Whether the leaf is at ``index`` among ``size`` leaves (RFC 9162, section 2.1.3.2)."""
    node, last = index, size - 1
    for other in (bytes.fromhex(each) for each in proof):
        if last == 0:
            return False
        if node & 1 or node == last:
            leaf = sha256(b"\x01" + other + leaf)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            leaf = sha256(b"\x01" + leaf + other)
        node, last = node >> 1, last >> 1
    return last == 0 and leaf == root


def fingerprint(line: str) -> str:
    """Return the fingerprint of the public key in ``line``, in ssh-keygen's form."""
    digest = base64.b64encode(sha256(base64.b64decode(line.split()[1]))).decode()
    return "SHA256:" + digest.rstrip("=")


def is_signed(line: str, namespace: str, message: str, signature: str) -> bool:
    """Whether the key in ``line`` signed ``message``, according to ssh-keygen."""
    with tempfile.TemporaryDirectory() as folder:
        signers, made = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text(f"somebody {line}\n")
        made.write_text(signature)
        files = ["-f", str(signers), "-s", str(made)]
        command = ["ssh-keygen", "-Y", "verify", *files, "-I", "somebody", "-n", namespace]
        done = subprocess.run(command, input=message.encode(), capture_output=True, check=False)
    return done.returncode == 0


def canonical(fields: dict[str, Any]) -> str:
    """Return ``fields`` as the signed text."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def digest(detail: dict[str, Any]) -> str:
    """Return the digest of a row's detail that a signature covers."""
    kept = {name: value for name, value in detail.items() if name not in UNSIGNED}
    return sha256(canonical(kept).encode()).hex()


def effect_of(fields: dict[str, Any], detail: dict[str, Any]) -> str:
    """Return the protected effect of a row, regardless of its tool and actor; empty if it has none."""
    zone, path, version, tool = (fields[name] for name in ("zone", "path", "version", "tool"))
    if fields["outcome"] != "ok":
        return ""
    if version is None:
        is_settling = zone in ("collab", "board", "handoff") and tool in (
            "dismiss_conflict",
            "revert_outside_edit",
        )
        is_resume = zone in ("session", "agent") and tool == "resume_agent"
        return {(True, False): "settle", (False, True): "resume"}.get(
            (is_settling, is_resume), "seen" if tool == "mark_as_seen" else ""
        )
    if zone in ("person", "settings"):
        return "budget" if zone == "settings" and tool == "set_budget" else str(zone)
    if zone == "request":
        # Watchroom answers a request that a person's grant covers.
        is_answer = version > 1 and tool == "answer_request" and fields["actor"] != "system"
        return "answer" if is_answer else ""
    if zone == "grant":
        return "grant" if version == 1 else ""
    if zone == "task":
        return "end_task" if version > 1 and fields["actor"].startswith("human:") else ""
    if zone == "workspace" and path.startswith("routine/"):
        return {"run_routine": "run_routine", "stop_routine": ""}.get(tool, "routine")
    if (zone, path, tool) == ("workspace", "stopped", "release_agents"):
        return "release"
    if zone in ("collab", "board") and "resolves" in detail:
        return "settle"
    is_work = tool == "revert_work" and fields["actor"].startswith("human:")
    return "revert" if (zone == "revert" and version == 1) or is_work else ""


def check_place(row: list[Any], statement: dict[str, Any], known: dict[int, list[Any]], legacy: bool) -> None:
    """Check that the decision ``row`` is at the signed position. Raise Wrong.

    ``statement``: the signed statement. ``known``: rows by number. ``legacy``: whether
    decisions of version 0.2.0 count.
    """
    where = f"row {row[0]}"
    if statement["format"] == "watchroom-decision/1":
        if not legacy:
            raise Wrong(f"{where}: it is signed in the form of version 0.2.0")
        return
    position = statement.get("position")
    if not isinstance(position, list) or len(position) != 2 or not 0 <= position[0] < row[0]:
        raise Wrong(f"{where}: it was signed for another place")
    if position[0] in known and leaf_of(known[position[0]]).hex() != position[1]:
        raise Wrong(f"{where}: it was signed for another journal")


def check_decision(
    row: list[Any], workspace: str, people: dict[str, Any], after: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Check that the decision ``row`` counts. Return the signed statement. Raise Wrong.

    ``people``: the role and keys of each actor before the row. ``after``: the same after the row, if it
    enrols somebody.
    """
    fields = dict(zip(COLUMNS, row, strict=True))
    detail = json.loads(fields["detail"] or "{}")
    where = f"row {fields['seq']}, {fields['tool']} by {fields['actor']}"
    effect = effect_of(fields, detail)
    if not fields["actor"].startswith("human:") or fields["tool"] not in DECISIONS.get(effect, set()):
        raise Wrong(f"{where}: this tool or actor cannot make such a decision")
    person = people.get(fields["actor"])
    # People may change only their own keys.
    changed = (
        (after or {}).get(fields["actor"]) if fields["path"] == fields["actor"][len("human:") :] else None
    )
    is_own = bool(person and changed and {**changed, "keys": person["keys"]} == person)
    if (
        person is None
        or person["role"] == "viewer"
        or (effect in OWNERS and person["role"] != "owner" and not is_own)
    ):
        raise Wrong(f"{where}: it is not theirs to decide")
    signed, signature = detail.get("signed"), detail.get("signature")
    if not signed or not signature:
        raise Wrong(f"{where}: nobody signed it")
    statement: dict[str, Any] = json.loads(signed)
    same = ("tool", "zone", "path", "base", "message")
    is_same = (
        all(statement.get(name) == fields[name] for name in same)
        and statement.get("person") == fields["actor"]
        and statement.get("content") == fields["sha256"]
        and statement.get("workspace") == workspace
        and statement.get("detail") == digest(detail)
        and statement.get("format") in FORMATS
        and (not (fields["version"] and (fields["base"] or 0) > 0) or fields["version"] == fields["base"] + 1)
    )
    if not is_same or canonical(statement) != signed:
        raise Wrong(f"{where}: what was signed is something else")
    line = next((each for each in person["keys"] if fingerprint(each) == statement.get("key")), None)
    if line is None or not is_signed(line, "watchroom-decision", signed, signature):
        raise Wrong(f"{where}: the signature is not one of theirs")
    return statement


def enrol(
    people: dict[str, Any], row: list[Any], content: str | None, workspace: str, owner: str
) -> dict[str, Any]:
    """Return ``people`` after ``row``, which enrols or revokes somebody; unchanged if it does not count."""
    fields = dict(zip(COLUMNS, row, strict=True))
    if content is None and fields["sha256"] is not None:
        raise Wrong(f"row {fields['seq']}, of a person: its content is left out")
    person = json.loads(content) if content else None
    after = {name: each for name, each in people.items() if name != f"human:{fields['path']}"}
    if person is not None:
        after[f"human:{fields['path']}"] = person
    try:
        if not people:
            if person is None or person["role"] != "owner" or fields["actor"] != f"human:{fields['path']}":
                return people
            if owner not in map(fingerprint, person["keys"]):
                raise Wrong(f"the owner is {', '.join(map(fingerprint, person['keys']))}, and not {owner}")
            check_decision(row, workspace, after)
        else:
            check_decision(row, workspace, people, after)
    except Wrong:
        if not people:
            raise
        return people
    return after


def check_rows(proof: dict[str, Any]) -> re.Match[str]:
    """Check that the rows equal the sealed rows. Return the fields of the seal. Raise Wrong."""
    found = CHECKPOINT.fullmatch(proof["checkpoint"])
    if proof["format"] != "watchroom-proof/1" or not found:
        raise Wrong("this is not a proof of a journal")
    size, root = int(found["size"]), base64.b64decode(found["root"])
    for each in [*proof["rows"], *proof["people"]]:
        checksum = each["row"][COLUMNS.index("sha256")]
        if each["content"] is not None and sha256(each["content"].encode()).hex() != checksum:
            raise Wrong(f"row {each['row'][0]}: its content does not match its checksum")
    leaves = [leaf_of(each["row"]) for each in proof["rows"]] + [
        bytes.fromhex(each) for each in proof["rest"]
    ]
    if root_after(proof["start"], leaves) != (root, size):
        raise Wrong("the rows are not those that were sealed: a row was changed, left out or added")
    for each in proof["people"]:
        if not is_included(each["proof"], leaf_of(each["row"]), each["index"], size, root):
            raise Wrong(f"row {each['row'][0]}, of a person, is not in the sealed journal")
    return found


def check(proof: dict[str, Any], owner: str) -> list[str]:
    """Return lines that describe what ``proof`` proves. Raise Wrong."""
    found = check_rows(proof)
    people: dict[str, Any] = {}
    decided, said, is_decided, legacy = 0, [], False, True
    known = {each["row"][0]: each["row"] for each in [*proof["people"], *proof["rows"]]}
    statements: set[tuple[str, ...]] = set()
    for each in [*proof["people"], *proof["rows"]]:
        fields = dict(zip(COLUMNS, each["row"], strict=True))
        detail = json.loads(fields["detail"] or "{}")
        if fields["zone"] == "person" and fields["version"] is not None and fields["outcome"] == "ok":
            before = people
            people = enrol(people, each["row"], each["content"], found["workspace"], owner)
            legacy = legacy and (people == before or '"format":"watchroom-decision/1"' in detail["signed"])
        elif people and effect_of(fields, detail):
            try:
                statement = check_decision(each["row"], found["workspace"], people)
                check_place(each["row"], statement, known, legacy)
                key = (*(fields[name] for name in ("zone", "path", "actor", "tool")), detail["signed"])
                if key in statements:
                    raise Wrong(f"row {fields['seq']}: it was decided before, and counts once")
                statements.add(key)
            except Wrong as error:
                said.append(f"DOES NOT COUNT: {error}")
            else:
                decided += 1
                is_decided = is_decided or statement.get("checkpoint") == proof["checkpoint"]
    if not people:
        raise Wrong("nobody is enrolled in this journal: nothing was signed")
    keys = [line for person in people.values() for line in person["keys"]]
    sealed = (proof["checkpoint"], proof["signature"])
    signer = next((key for key in keys if is_signed(key, "watchroom-checkpoint", *sealed)), None)
    by = f"signed by {fingerprint(signer)}" if signer else "signed by a machine's key only"
    by += ", and by a person with a decision" if is_decided else ""
    rows, after, until = len(proof["rows"]), proof["after"], proof["until"]
    return [
        f"{rows} rows after row {after} up to row {until}: unchanged, and none is left out",
        f"{decided} decisions: each signed by somebody who was enrolled by {owner}",
        f"sealed up to row {found['seq']} ({found['size']} rows), {by}",
        *said,
    ]


def main(arguments: list[str]) -> int:
    """Return the exit status, 0 if everything is proven."""
    if len(arguments) != 2:
        print(__doc__)
        return 2
    try:
        print("\n".join(check(json.loads(Path(arguments[0]).read_text("utf-8")), arguments[1])))
    except (Wrong, KeyError, TypeError, ValueError, IndexError) as error:
        print(f"NOT PROVEN: {error}" if isinstance(error, Wrong) else f"NOT PROVEN: no proof: {error!r}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
