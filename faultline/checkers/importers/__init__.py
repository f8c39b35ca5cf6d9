"""Readers of histories that other tools recorded.

Each turns a file into a `History`, so that everything that works on Faultline's own runs works on foreign ones. Where
a format has no times, the number of the line stands for the time in microseconds and `clock` is `events`. Input that
cannot be read raises UsageError with the file, the line and the cause.
"""

from faultline.checkers.importers.imported import ImportedHistory
from faultline.checkers.importers.registry import FORMATS, FormatDescription, format_named

__all__ = ["FORMATS", "FormatDescription", "ImportedHistory", "format_named"]
