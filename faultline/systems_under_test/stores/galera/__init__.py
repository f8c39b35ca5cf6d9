"""MariaDB with Galera, a store of several primaries that certify each other's transactions, on hosts."""
