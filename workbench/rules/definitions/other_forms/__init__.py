"""Files of other programs as definitions, and definitions as such files. Pure: texts, no files."""
