"""Isolation levels of transactions that read and write registers.

committed   a history as committed transactions: the writer of each read, and anomalies that no level allows
read_committed, read_atomic, causal
            the order of writes that each of these levels forces, in near-linear time
order       whether such an order is possible at all, and the shortest cycle when it is not
weak        those three as checkers
polygraph, closure, search, core
            snapshot isolation and serializability: a search for an order of writes under a budget
strong      those two as checkers; explain: the sentences of all five

Shape: `txn` (any other name will do) whose value is a list of micro-operations `["r", key, null]` and
`["w", key, value]`; the result of an ok one has the values that were read. Each value is written to a key at most once.
"""
