"""Workloads: what clients do to a store, what the store promised about it, and which checkers decide.

Found by entry points (`faultline.workloads`). With Faultline come `register`, `read-write` for stores that offer no
compare-and-set, and `siblings` for stores that answer with concurrent values.
"""

__all__: list[str] = []
