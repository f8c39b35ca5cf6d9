"""Workloads: what clients do to a store, what the store promised about it, and which checkers decide.

Found by entry points (`faultline.workloads`); the ones that come with Faultline are `register` alone so far.
"""

__all__: list[str] = []
