"""Follower reads of `consistent-core`: replicas that answer reads, and what tells whether they may."""
