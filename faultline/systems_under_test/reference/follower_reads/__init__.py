"""`follower-reads`: a versioned store of which followers answer reads, and what tells whether they may."""
