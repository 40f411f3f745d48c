"""Carries out a plan: makes its worktrees, staffs them, waits, asks for the merges, and ends with the account."""
