"""NATS JetStream: a key-value bucket on a replicated stream."""
