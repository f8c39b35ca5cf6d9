"""Slate: registers on one primary, written on its disk before anything is answered; the other nodes hold copies."""
