"""The first copy of a large store: children write its rows to Parquet files, which DuckDB inserts as they land."""
