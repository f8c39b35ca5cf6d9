"""A grid that keeps key-value data in the memory of its members, which their oldest one coordinates."""
