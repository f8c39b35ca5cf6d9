"""Singular Update Queue on threads of the operating system, which the simulated world cannot run (chapter 13)."""
