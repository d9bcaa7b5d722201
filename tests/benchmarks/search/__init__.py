"""How often a search over thousands of tools finds the right one, and how fast.

    python -m tests.benchmarks.search [--live-tools FILE] [--live-tasks FILE] [--subjects NAME ...]

There are two sets of requests with the tools that answer them:

- BFCL v4 (`bfcl-eval` on the package index): all definitions of its single-turn and multi-turn
  categories are the tools. The queries are the last messages of the users in all categories where
  the right answer calls one function. These queries did not choose the weights, but were measured
  several times while they were chosen.
- LiveMCPBench: its `tools.json`, and a file of its annotated tasks. A query is one step of a task,
  and the right tool is the one on the same line of the annotation; tasks with another number of
  steps than tools are left out. The files are read where the options or the variables
  `LIVE_MCP_TOOLS` and `LIVE_MCP_TASKS` say.

A hit is a right name among the first five different names. Each library ranks with its own code, in
an environment of its own. The times are means of the processor time of one query, over 10,000
tools: those of both sets, with a number after each name.

The weights of the search, its stop words and its synonyms were chosen with requests from
Seal-Tools, ToolAlpaca, MetaTool and MCPToolBench++, and with half of the tasks of LiveMCPBench.
Many of its steps are not on the line of their tool: "write a report" is annotated with a tool that
reads a ranking. In that half, at least 8 of 50 steps have the tool of another step.
"""
