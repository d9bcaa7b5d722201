"""The built-in tools: sandbox, shell, editor, search, plan and skills."""
