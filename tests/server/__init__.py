"""Tests of the HTTP listener."""
