"""Tests that run in the environment of a framework; `test_elsewhere.py` starts them."""
