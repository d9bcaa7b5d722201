"""An event store in a Redis server."""
