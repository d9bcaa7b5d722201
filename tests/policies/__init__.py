"""Tests of the policies, one file for each thing that they do."""
