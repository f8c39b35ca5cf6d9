"""Readers of histories that other tools recorded.

Each turns a file into a `History`, so that all tools for Faultline's own runs work on foreign ones. Where a format has
no times, the number of the event is used as the time and `clock` is `events`. Input that cannot be read
raises UsageError with the file, the line and the cause.

registry         the formats by name; detect recognises them by content
text             files piece by piece; edn and json_stream make events of the pieces
events           events become rows, or an error; independent moves keys out of tuples, suggest names a model
jepsen, jepsen_log, porcupine_kv, porcupine, faultline_history, parquet
                 the formats
"""

from faultline.checkers.importers.registry import AUTO, FORMATS, FormatDescription, format_named, format_of

__all__ = ["AUTO", "FORMATS", "FormatDescription", "format_named", "format_of"]
