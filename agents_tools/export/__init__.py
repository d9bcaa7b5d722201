"""Adapters to other frameworks: their agents as tools, one module for each framework."""
