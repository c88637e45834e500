"""The stores: SQLite (embedded), PostgreSQL (beyond one machine), memory (the reference, and for tests)."""
