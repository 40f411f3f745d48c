"""Pure rules about conversations: what their messages consist of, and their limits."""
