"""Adapters to language models, one module per provider; fallback models and request limits."""
