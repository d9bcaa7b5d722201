"""An event store in an SQLite file."""
