"""Queries and reports over the live store with DuckDB. Nothing here writes to the store."""
