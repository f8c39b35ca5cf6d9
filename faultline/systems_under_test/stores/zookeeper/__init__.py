"""Apache ZooKeeper, the coordination service with which most others are compared, as a store that runs on hosts."""
