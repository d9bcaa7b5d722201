"""The reliability campaign: what the library promises, tried for minutes instead of once."""
