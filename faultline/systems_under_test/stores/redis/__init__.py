"""Redis, replicated in two ways: a master watched by Sentinels, and Redis Cluster. Both replicate asynchronously."""
