"""Programs of other frameworks, and the same programs with this library."""
