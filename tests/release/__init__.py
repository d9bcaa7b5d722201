"""What is published: how it is built, looked at, installed and audited. `python -m tests.release`."""
