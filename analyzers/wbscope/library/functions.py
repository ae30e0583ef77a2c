# SPDX-License-Identifier: Apache-2.0
"""What a user's SQL may call: functions that compute, and read nothing but their arguments.

An allow-list, for an SQLite may be built with more: some load code, tell where it lies in memory,
or open files. Names are those of https://sqlite.org/lang_corefunc.html and the pages beside it.
"""

from __future__ import annotations

__all__ = ["FUNCTIONS", "TABLE_FUNCTIONS"]

_CORE = """
    abs char coalesce concat concat_ws format glob hex ifnull iif if instr length like likelihood
    likely lower ltrim max min nullif octet_length printf quote random randomblob replace round
    rtrim sign soundex sqlite_version substr substring trim typeof unhex unicode unistr
    unistr_quote unlikely upper zeroblob
"""
_TIMES = """
    current_date current_time current_timestamp date datetime julianday strftime time timediff
    unixepoch
"""
_AGGREGATES = """
    avg count group_concat max median min percentile percentile_cont percentile_disc string_agg
    sum total
"""
_WINDOWS = """
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
"""
_MATH = """
    acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10
    log2 mod pi pow power radians sin sinh sqrt tan tanh trunc
"""
_JSON = """
    -> ->> json json_array json_array_insert json_array_length json_error_position json_extract
    json_group_array json_group_object json_insert json_object json_patch json_pretty json_quote
    json_remove json_replace json_set json_type json_valid
    jsonb jsonb_array jsonb_array_insert jsonb_extract jsonb_group_array jsonb_group_object
    jsonb_insert jsonb_object jsonb_patch jsonb_remove jsonb_replace jsonb_set
"""
FUNCTIONS = frozenset(f"{_CORE} {_TIMES} {_AGGREGATES} {_WINDOWS} {_MATH} {_JSON}".split())
# Of SQLite's own tables that are not in the file; the others show its pages or its statements.
TABLE_FUNCTIONS = frozenset(
    ("json_each", "json_tree", "pragma_table_info", "pragma_table_list", "pragma_table_xinfo")
)
