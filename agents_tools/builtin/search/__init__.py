"""Search of a workspace: patterns, ignore rules, directory walk, ripgrep, lines."""
