"""Agent definitions: what an agent is told and given. The format of their directories, and what is valid. No I/O."""
