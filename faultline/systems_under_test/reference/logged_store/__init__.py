"""`logged-store`: servers without replication, each with a store behind a write-ahead log and versions in a file."""
