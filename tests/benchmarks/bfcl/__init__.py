"""Whether tools with raw JSON Schemas accept correct calls, refuse broken ones and explain why.

The schemas and the correct ("gold") calls are the Python categories of BFCL v4, a public data set
(`bfcl-eval` on the package index). It is installed without its dependencies into an environment of
its own, and read there. Run the benchmark with

    python -m tests.benchmarks.bfcl [--subjects NAME ...] [--details] [--report FILE]

A tool is created from each function with the library's own means for a raw JSON Schema, and each
gold call is sent to it. BFCL lists several right values for a parameter; the call has the first one.
A second gold call leaves out the parameters that BFCL allows to leave out. Each gold call that
matches its schema is then broken in all these ways, at each depth, one fault at a time
(`faults.py`):

- `missing`: a required key is left out.
- `type`: a value has another type, to which it cannot be converted either.
- `enum`: a value is not in its enumeration; once unrelated, once with one wrong letter.
- `extra`: an object has a key that the schema does not have.
- `misspelled`: a key has one letter missing, doubled, swapped with the next, or replaced.

The choices between values and letters are random with a fixed seed, so that runs repeat.

The tables count, for each kind of fault, the broken calls that ran; the errors that name the place,
that is, the key, where a misspelled key can also be reported as the right key that is missing; for
misspelled keys, the errors with a line that pairs the key with the right one and with no other
parameter; and the calls that `fixer.py` repairs in one step. The fixer reads only the
call and the text of the error. A repaired call runs and equals the gold call; an unrelated value of
an enumeration can become any of its values.

BFCL is converted to JSON Schema by renaming `dict`, `float` and `tuple` to `object`, `number` and
`array`, and by dropping the type `any` (`cases.py`). Objects with properties are closed, because
the parameters of a Python function are. Nothing else is changed. A gold call can contradict its own
schema; the option `--report` lists these calls with the reason, and calls that miss a goal.
"""
