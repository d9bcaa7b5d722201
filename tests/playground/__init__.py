"""The playground: its routes, its exports, its way of noticing changes, and the whole of it."""
