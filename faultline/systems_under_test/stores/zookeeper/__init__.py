"""Apache ZooKeeper, the coordination service that most others are measured by, as a store that runs on hosts."""
