"""Properties that hold for whatever anybody declares and any model sends."""
