"""Functions that other people wrote, and what becomes of them as tools."""
