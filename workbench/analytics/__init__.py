"""Questions about what happened, answered by DuckDB from the live store. Nothing here writes to the store."""
