"""Properties that hold for any declaration and any input of a model."""
