"""Makes the pictures of the documentation, of what the programs really show."""
