"""etcd, the store that keeps the state of Kubernetes: three programs on three hosts, spoken to as anybody would."""
