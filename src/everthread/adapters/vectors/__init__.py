"""Where vectors are kept: beside the log in memory, SQLite or PostgreSQL, or in a Milvus of their own."""
