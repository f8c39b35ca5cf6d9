"""Leases and watches on a Raft server, and the client that uses them: what a coordination service adds to a log."""
