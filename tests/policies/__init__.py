"""Tests of the policies, one file per topic."""
