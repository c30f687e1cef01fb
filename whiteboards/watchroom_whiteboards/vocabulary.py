"""The headings, field names and statuses of boards in each language (BOARDS-3.1).

A board can mix the languages. Upper and lower case are equivalent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from watchroom.texts import Language

SectionKind: TypeAlias = Literal[
    "overview",
    "goals",
    "decisions",
    "milestones",
    "team",
    "risks",
    "update_log",
    "basics",
    "tasks",
    "negotiations",
    "knowledge",
    "execution_log",
]
EntryKind: TypeAlias = Literal["decision", "task", "negotiation"]
FieldName: TypeAlias = Literal[
    "time",
    "proposer",
    "content",
    "signers",
    "status",
    "description",
    "progress",
    "blockers",
    "parties",
    "topic",
    "conclusion",
    "author",
]
DecisionStatus: TypeAlias = Literal["approved", "rejected", "appealed"]
TaskStatus: TypeAlias = Literal["in_progress", "done"]

HEADINGS: Final[Mapping[SectionKind, Mapping[Language, str]]] = {
    "overview": {"zh": "任务概述", "en": "Task overview"},
    "goals": {"zh": "核心目标", "en": "Core goals"},
    "decisions": {"zh": "关键决策记录", "en": "Key decisions"},
    "milestones": {"zh": "里程碑", "en": "Milestones"},
    "team": {"zh": "团队结构", "en": "Team"},
    "risks": {"zh": "问题与风险", "en": "Issues and risks"},
    "update_log": {"zh": "更新日志", "en": "Update log"},
    "basics": {"zh": "基本信息", "en": "Basic information"},
    "tasks": {"zh": "当前任务", "en": "Current tasks"},
    "negotiations": {"zh": "决策与协商", "en": "Decisions and negotiations"},
    "knowledge": {"zh": "知识积累", "en": "Knowledge"},
    "execution_log": {"zh": "执行日志", "en": "Execution log"},
}
"""The headings of the templates."""

_SHORT_HEADINGS: Final[Mapping[str, SectionKind]] = {
    "关键决策": "decisions",
    "决策记录": "decisions",
    "decisions": "decisions",
    "team structure": "team",
    "风险": "risks",
    "risks": "risks",
    "任务": "tasks",
    "tasks": "tasks",
    "协商": "negotiations",
    "negotiations": "negotiations",
}
ENTRIES: Final[Mapping[EntryKind, tuple[str, ...]]] = {
    "decision": ("决策", "decision"),
    "task": ("任务", "task"),
    "negotiation": ("协商记录", "negotiation", "协商", "negotiation record"),
}
UPDATE: Final = ("更新", "update")
FIELDS: Final[Mapping[FieldName, Mapping[Language, str]]] = {
    "time": {"zh": "时间", "en": "Time"},
    "proposer": {"zh": "提议者", "en": "Proposer"},
    "content": {"zh": "内容", "en": "Content"},
    "signers": {"zh": "签字方", "en": "Signed by"},
    "status": {"zh": "状态", "en": "Status"},
    "description": {"zh": "描述", "en": "Description"},
    "progress": {"zh": "进度", "en": "Progress"},
    "blockers": {"zh": "阻塞因素", "en": "Blockers"},
    "parties": {"zh": "参与方", "en": "Parties"},
    "topic": {"zh": "议题", "en": "Topic"},
    "conclusion": {"zh": "结论", "en": "Conclusion"},
    "author": {"zh": "操作者", "en": "Author"},
}
DECISION_STATUSES: Final[Mapping[str, DecisionStatus]] = {
    "已批准": "approved",
    "approved": "approved",
    "被否决": "rejected",
    "rejected": "rejected",
    "申诉中": "appealed",
    "under appeal": "appealed",
    "appealed": "appealed",
}
TASK_STATUSES: Final[Mapping[str, TaskStatus]] = {
    "进行中": "in_progress",
    "in progress": "in_progress",
    "已完成": "done",
    "done": "done",
}
NOTHING: Final = frozenset({"", "-", "—", "无", "没有", "none", "n/a"})
"""Values that mean "none"."""


def normalize(words: str) -> str:
    """Return ``words`` in lower case and with single spaces, for comparison."""
    return " ".join(words.split()).casefold()


_SECTIONS: Final[Mapping[str, SectionKind]] = {
    **{normalize(title): kind for kind, titles in HEADINGS.items() for title in titles.values()},
    **_SHORT_HEADINGS,
}
_FIELDS: Final[Mapping[str, FieldName]] = {
    normalize(word): name for name, words in FIELDS.items() for word in words.values()
}
_ENTRIES: Final[Mapping[str, EntryKind]] = {word: kind for kind, words in ENTRIES.items() for word in words}


def section_kind_of(title: str) -> SectionKind | None:
    """Return the kind of the section with the heading ``title``; None if the templates have none."""
    return _SECTIONS.get(normalize(title))


def entry_kind(word: str) -> EntryKind | None:
    """Return the kind of entry for ``word`` in either language; None if there is none."""
    return _ENTRIES.get(normalize(word))


def field_name(word: str) -> FieldName | None:
    """Return the name of the field for ``word`` in either language; None if there is none."""
    return _FIELDS.get(normalize(word))


def is_same_heading(one: str, other: str) -> bool:
    """Return whether two titles mean the same section, such as "Milestones" and 里程碑."""
    kind = section_kind_of(one)
    return normalize(one) == normalize(other) or (kind is not None and kind == section_kind_of(other))
