"""What the ports are married to: databases, vector stores, models, queues."""
