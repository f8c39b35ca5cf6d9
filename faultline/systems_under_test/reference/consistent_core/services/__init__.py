"""The services of `consistent-core`: leases, watches and hierarchical keys on top of the replicated log."""
