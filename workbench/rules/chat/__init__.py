"""Pure rules about conversations: what their turns consist of, and their limits."""
