"""The tests of agents_tools; their folders mirror the package."""
