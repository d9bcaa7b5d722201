"""Tests of what user interfaces get to see."""
