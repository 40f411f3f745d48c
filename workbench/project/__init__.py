"""Which project a directory belongs to, and what the user keeps about it outside the repository."""
