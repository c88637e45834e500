"""Where jobs wait: in memory, in the SQLite file, or with procrastinate in PostgreSQL."""
