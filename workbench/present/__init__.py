"""How things are shown to a person: tables, graphs, text that is inert."""
