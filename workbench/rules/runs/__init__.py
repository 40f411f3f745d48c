"""What the values of runs are, how they are compared, and which runs a condition selects. Pure."""
