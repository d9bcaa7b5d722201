"""Tell by small faults, put into the package one at a time, whether the suite would see them.

`python -m tests.mutation --module agents_tools._strict --sample 200 --seed 1` changes one operator,
condition, constant, return or statement of the module (a mutant), runs the tests that reach the
changed line, and says which changes no test saw. Such a survivor is a hole in the suite, needless
code, or a change that means the same (`equivalent.toml` holds those, with the reason).

Why a runner of our own (looked at: mutmut 3.8, cosmic-ray 8.7, pytest-gremlins 1.12):

- mutmut calls each function through a trampoline, which adds frames and names to what this package
  reads and measures (signatures, tracebacks, async generators that are closed early); it leaves out
  functions with decorators, and never removes a statement, an `except` or a `finally`.
- cosmic-ray writes the mutant into the working tree and starts pytest anew for each one; its
  imports alone take longer than the tests.
- pytest-gremlins starts a process per mutant as well, its forking way being turned off.

Here pytest imports and collects once. Each mutant is a fork of that process in which the code of
the live function is exchanged, so that nothing is imported again and nothing is written; only tests
that reach the line run, quickest first. What runs at import alone cannot be exchanged that way: of
module-level code, only plain numbers and flags are changed. POSIX only.
"""
