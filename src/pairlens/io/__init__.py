"""Files: tables that users hand in, results that users keep, journals of long runs.

`tables` and `pairs` turn CSV, TSV, JSON Lines, Parquet and hub datasets into rows, each with its line and with what is
wrong with it. `documents` turns explanations and contributions into files and back; `files` writes any file whole or
not at all; `journal` records what a long run has done, so that the run can resume.
"""

from pairlens.io.files import check_folder, make_folder, require, require_pyarrow, versions, whole_file, write_file
from pairlens.io.journal import Journal, Record, differences
from pairlens.io.pairs import PairRow, PairTable
from pairlens.io.tables import InputRow, InputTable, find_columns, in_blocks

__all__ = [
    "InputRow",
    "InputTable",
    "Journal",
    "PairRow",
    "PairTable",
    "Record",
    "check_folder",
    "differences",
    "find_columns",
    "in_blocks",
    "make_folder",
    "require",
    "require_pyarrow",
    "versions",
    "whole_file",
    "write_file",
]
