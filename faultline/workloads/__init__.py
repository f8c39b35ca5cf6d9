"""Workloads: what clients do to a store, what the store promised about it, and which checkers decide.

Found by entry points (`faultline.workloads`). With Faultline come `register`, `read-write` for stores that offer no
compare-and-set, `siblings` for stores that answer with concurrent values, and `cart` for applications that resolve
them; `transfer`, `counter`, `set`, `append`, `log-order`, `sequential`, `sessions` and `unique-ids` for stores that
offer more than registers.

A workload names the `functions` it invokes, a system those its clients perform; a run of two that do not fit is
refused before it begins.
"""

__all__: list[str] = []
