"""One adapter a peer, all with the same names: how that peer does what the library does.

Each file has `decorate`, `definitions`, `caller` and `answerer`, a caller
that goes on to the text a model reads. `stream`, where the peer's tools can speak while they work,
runs a tool that says so many things and counts what came.
"""
