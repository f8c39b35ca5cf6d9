"""The power of a campaign: the share of bugs that it finds, measured with bugs which a generator makes."""
