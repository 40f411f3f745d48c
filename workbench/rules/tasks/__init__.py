"""Tasks as data: their states, and plans as text."""
