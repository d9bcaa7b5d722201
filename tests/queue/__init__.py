"""Calls that wait in a queue: workers that are killed, stopped, restarted, and callers that are."""
