"""Questions about everything: read and write of spec 1, and how the server is doing."""
