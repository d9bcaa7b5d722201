"""Code mode: programs of a model, and the sandbox that runs them."""
