"""Checkers for transactions: what the reads of a history say about the order of its transactions, after Elle."""
