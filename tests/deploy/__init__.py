"""The files of `examples/deploy`: valid, consistent, and run as the containers run them."""
