"""The process that works in a worktree. It imports the client and the rules only."""
