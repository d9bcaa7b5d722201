"""One suite for every framework: our tools in its own agents, driven by scripted models."""
