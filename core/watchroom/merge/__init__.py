"""Three-way merge, as regions that a person decides on. Pure: no files, no journal, no terminal."""

from watchroom.merge.draft import (
    Regions,
    choose,
    choose_everywhere,
    count_marks,
    current_text,
    edited,
    joined,
    left_open,
    moved_on,
    result_changes,
    unresolved_text,
)
from watchroom.merge.lines import Change, changes, split_lines, unified_diff
from watchroom.merge.regions import CHOICES, Choice, Kind, Lines, Region, merge, regions_of
from watchroom.merge.words import changed_words

__all__ = [
    "CHOICES",
    "Change",
    "Choice",
    "Kind",
    "Lines",
    "Region",
    "Regions",
    "changed_words",
    "changes",
    "choose",
    "choose_everywhere",
    "count_marks",
    "current_text",
    "edited",
    "joined",
    "left_open",
    "merge",
    "moved_on",
    "regions_of",
    "result_changes",
    "split_lines",
    "unified_diff",
    "unresolved_text",
]
