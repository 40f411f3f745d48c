"""Where secrets, or references to them, stand in definitions and in the configurations of servers."""
