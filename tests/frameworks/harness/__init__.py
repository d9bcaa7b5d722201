"""How the suite drives each framework."""
