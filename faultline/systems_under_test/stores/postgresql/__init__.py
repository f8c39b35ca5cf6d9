"""PostgreSQL as a store that runs on hosts: replicated by streaming alone, and with Patroni for fail-over."""
