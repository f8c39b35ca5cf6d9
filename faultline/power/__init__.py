"""The power of a campaign: the share of generated bugs that it finds."""
