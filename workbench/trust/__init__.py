"""What the user has trusted: the state directory, withheld files, the allowlist, known secrets."""
