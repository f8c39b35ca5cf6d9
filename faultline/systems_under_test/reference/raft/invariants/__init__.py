"""What must hold of every system that is built from the Raft server: `raft_invariants` makes them all."""
