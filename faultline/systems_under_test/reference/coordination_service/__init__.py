"""`coordination-service`: leases, watches and sessions on a Raft kernel, for clusters that elect and lock by it."""
