"""Implementations of the ports: databases, vector stores, models, queues."""
