"""Tests of runs in a store."""
