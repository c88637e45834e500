"""The stores, which implement core/ports.py: SQLite (embedded), PostgreSQL (several machines), in_memory (the shortest,
and for tests). Each package has a module per port (log, views, checkpoints, notes, turns, search, ...) and a `store`
that joins them.

schema.sql, schema   the tables of both databases, and the migrations to them
layout, turn_rows    what both databases share: columns, keys, where large payloads go
zstd_codec           zstd with a dictionary, for payloads and for our own rows (`packed_records`)
database_url         what the URL of a database names
nearest              the nearest vectors by dot product
restore              backups of SQLite, and putting one back; `restore_postgres` does the same for PostgreSQL
blocking             runs a store's coroutines in the caller's thread, without an event loop

To add a store verb: declare it in core/ports.py with its docstring, write its clause in tests/contracts, then implement
it in `in_memory`, `sqlite` and `postgres`, with each SQL statement named in that package's `statements`. A new table
also goes into schema.sql, gets a migration, and states in schema.py what an erase does to its rows.
"""
