"""How many tokens code mode saves."""
