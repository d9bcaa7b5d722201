"""Run stores: in memory, in an SQLite file, in PostgreSQL and in Redis."""
