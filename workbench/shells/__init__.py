"""Shells turn bytes into `dispatch()` and the feed into bytes. They hold no rule and no SQL."""
