"""Slate: registers on one primary, which writes to its disk before it answers; the other nodes hold copies."""
