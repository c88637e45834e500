"""The history of the tables, as alembic runs it; `migrating` is the way in."""
