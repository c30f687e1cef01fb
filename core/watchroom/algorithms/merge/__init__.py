"""Three-way merge into regions on which a person can decide. Pure: no files, no journal, no terminal.

regions = merge(base, current, incoming)
for index in find_open_regions(regions):
    regions = choose_region(regions, index, "incoming")
text = merge_styles(base, current, incoming).apply(join_regions(regions))
"""

from watchroom.algorithms.merge.diff import (
    LineChange,
    diff_hunks,
    diff_lines,
    find_changed_words,
    split_lines,
    unified_diff,
)
from watchroom.algorithms.merge.regions import CHOICES, Choice, Kind, Lines, Region, build_regions, merge
from watchroom.algorithms.merge.resolution import (
    CLOSING,
    DIVIDING,
    OPENING,
    Regions,
    apply_edit,
    choose_all_conflicts,
    choose_region,
    diff_result,
    find_marker_offsets,
    find_open_regions,
    join_current,
    join_regions,
    normalize_regions,
    rebase_regions,
    text_with_markers,
)
from watchroom.algorithms.merge.styles import (
    BOM,
    LineEnd,
    MergedStyles,
    StyledDiff,
    TextStyle,
    apply_style,
    detect_style,
    diff_apart_from_style,
    merge_styles,
    normalize_style,
)

__all__ = [
    "BOM",
    "CHOICES",
    "CLOSING",
    "DIVIDING",
    "OPENING",
    "Choice",
    "Kind",
    "LineChange",
    "LineEnd",
    "Lines",
    "MergedStyles",
    "Region",
    "Regions",
    "StyledDiff",
    "TextStyle",
    "apply_edit",
    "apply_style",
    "build_regions",
    "choose_all_conflicts",
    "choose_region",
    "detect_style",
    "diff_apart_from_style",
    "diff_hunks",
    "diff_lines",
    "diff_result",
    "find_changed_words",
    "find_marker_offsets",
    "find_open_regions",
    "join_current",
    "join_regions",
    "merge",
    "merge_styles",
    "normalize_regions",
    "normalize_style",
    "rebase_regions",
    "split_lines",
    "text_with_markers",
    "unified_diff",
]
