"""Decides what is trusted: the state directory, withheld files, the allowlist, known secrets."""
