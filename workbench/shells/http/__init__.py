"""The HTTP shell: operations, the REST endpoints of spec 1, the feed as server-sent events, and their description."""
