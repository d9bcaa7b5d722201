"""Tool definitions for model providers as plain dictionaries, without an SDK."""
