"""`consistent-core`: a small replicated store that other clusters lean on – keys, leases, watches – and its parts."""
