"""etcd, the store that keeps the state of Kubernetes: three programs on three hosts, with ordinary clients."""
