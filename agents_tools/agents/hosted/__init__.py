"""Hosted tools: tools that the model provider runs, or requests this machine to run."""
