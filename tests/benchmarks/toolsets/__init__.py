"""What many tools cost: a turn, a search, a prompt; `python -m tests.benchmarks.toolsets`."""
