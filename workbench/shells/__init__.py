"""Shells translate between protocols and `dispatch()` or the feed. They contain no rules and no SQL."""
