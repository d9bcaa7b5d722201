"""What a provider is told about a tool, as plain dictionaries: one module per provider, no SDK."""
