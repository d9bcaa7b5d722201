"""Searching a workspace: patterns, ignore rules, walking, ripgrep, lines."""
