"""What this node does with each peer: greet it, agree on edges, send and fetch events, and compare what both know."""
