"""The speed of class-based and built-in tools, compared with the same work written by hand.

`limit`, `library` and `peers.openhands` do the same with the same names:

- `resolver` gives what makes a tool of a specification, `caller` what calls one with JSON and gives
  the text that a model reads, `openai` and `mcp` what describes one; `invoker`, where there is
  another way for agents, gives what calls one in that way.
- `terminal` starts a shell, and gives what runs a command in it; so does `tmux`, where there is one.
- `editor` gives what runs a command of the file editor on a path.
- `grep`, `lines` and `glob` give what searches a directory, and says how much it has found.

Figures are medians: these operations wait for the system, which has its own fastest moments. Files
are on the disk that holds temporary files: an editor that waits until a change is safe pays for it.
"""

from __future__ import annotations

BUILTIN_TITLES = {
    "class_import": "import class-based tools, CPU (limit: names of pydantic)",
    "builtin_import": "import terminal, editor, grep and glob, CPU (limit: names of pydantic)",
    "class_define": "define a tool of three classes, first schema (limit: two models)",
    "class_resolve": "create a tool from its specification (limit: a model)",
    "class_call": "call: JSON to action to observation to text (limit: two models)",
    "class_invoke": "the same call in a worker thread, as in an agent",
    "class_openai": "export to OpenAI (limit: schema of the action)",
    "class_mcp": "export to MCP (limit: schemas of action and observation)",
    "terminal_start": "start a terminal and run a command (limit: bash over pipes)",
    "terminal_true": "terminal: `true`",
    "terminal_echo": "terminal: `echo hello`",
    "terminal_seq": "terminal: `seq 1 200000`",
    "tmux_start": "start a terminal in tmux and run a command",
    "tmux_echo": "terminal in tmux: `echo hello`",
    "editor_view": "view a file of 10 MB (limit: read it)",
    "editor_range": "view 50 lines of the file (limit: read and split it)",
    "editor_range_changed": "view 50 lines after another program changed the file",
    "editor_replace": "replace a text in the file (limit: read, replace, write)",
    "editor_insert": "insert a line (limit: read, split, write)",
    "editor_undo": "undo (limit: write)",
    "editor_small_view": "view a file of 200 lines (limit: read it)",
    "editor_small_replace": "replace a text in the file (limit: read, replace, write)",
    "grep": "grep 3,000 files for paths (limit: ripgrep)",
    "grep_lines": "grep 3,000 files for lines (limit: ripgrep)",
    "grep_python": "grep 3,000 files for paths, without ripgrep (limit: os.walk and re)",
    "glob": "glob in 3,000 files (limit: ripgrep)",
    "glob_python": "glob in 3,000 files, without ripgrep (limit: os.walk and fnmatch)",
}
BUILTIN_IMPORTS = ("class_import", "builtin_import")
BUILTIN_TIMED = tuple(name for name in BUILTIN_TITLES if name not in BUILTIN_IMPORTS)
