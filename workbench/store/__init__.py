"""The store: one writer, many readers, one feed of events; SQLite behind it, and SQL that PostgreSQL runs, too."""
