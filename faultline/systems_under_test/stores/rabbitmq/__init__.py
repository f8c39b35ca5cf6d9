"""RabbitMQ: queues that are replicated by Raft."""
