"""The speed of the library compared with its limit and its peers; run it with `make bench`.

The limit of a workload is the least that could do it: pydantic-core and asyncio, used by hand. The
limit of a call keeps the same promises as a call of the library; see `limit.caller`.
Limit and subject run by turns in one process, in batches of a few milliseconds, and the figure is
the ratio of their fastest batches: it holds on a busy machine, where absolute times do not.
"""
