"""Three-way merge, as regions that a person decides on. Pure: no files, no journal, no terminal."""

from watchroom.merge.draft import (
    CLOSING,
    DIVIDING,
    OPENING,
    Regions,
    choose,
    choose_everywhere,
    current_text,
    edited,
    joined,
    left_open,
    mark_offsets,
    moved_on,
    result_changes,
    unresolved_text,
)
from watchroom.merge.lines import Change, changes, split_lines, unified_diff
from watchroom.merge.regions import CHOICES, Choice, Kind, Lines, Region, merge, regions_of
from watchroom.merge.words import changed_words

__all__ = [
    "CHOICES",
    "CLOSING",
    "DIVIDING",
    "OPENING",
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
    "current_text",
    "edited",
    "joined",
    "left_open",
    "mark_offsets",
    "merge",
    "moved_on",
    "regions_of",
    "result_changes",
    "split_lines",
    "unified_diff",
    "unresolved_text",
]
