"""Guided campaigns: each wave of runs is decided from the results of the waves before it.

A run's coverage is the pairs of successive events at a node, the features it entered, and its option values and pairs
of them. A plan whose run reached something new is kept in an archive and changed in later waves, as coverage-guided
fuzzers do with inputs (Zalewski's AFL; Böhme et al., "Coverage-based greybox fuzzing as Markov chain", CCS 2016).

    decide a wave → carry out its units → read their signals → learn → decide the next wave

No decision depends on the order in which the runs of a wave end, so the same plan gives the same campaign on any Spark
master.
"""

from __future__ import annotations
