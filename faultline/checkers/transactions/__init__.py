"""Checkers for transactions: they infer the order of transactions from the reads of a history, after Elle."""
