"""Functions of a notebook as tools: `@wb.tool`."""
