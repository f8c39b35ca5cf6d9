"""The invariants of every system that is built from the Raft server: `agreement.raft_invariants` makes them all."""
