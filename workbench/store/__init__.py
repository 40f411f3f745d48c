"""The store: one writer, many readers, one feed of events; on SQLite or on PostgreSQL, by the same SQL."""
