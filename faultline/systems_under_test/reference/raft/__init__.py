"""A Raft server that other systems are made of: `server` from top to bottom, and what it is put together from."""
