"""What is shared: contexts that agents write, the events of the feed, and exports (spec 1)."""
