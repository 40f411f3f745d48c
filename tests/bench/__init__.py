"""How fast Workbench is, always beside something that does the same work: `make bench`, `make bench ONLY=B11`.

A row is one module `bNN.py` with a `ROW`; nothing else needs to know of it.
"""
