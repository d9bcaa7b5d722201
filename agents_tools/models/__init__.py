"""Adapters to language models: one module per provider, each with `load(name)`."""
