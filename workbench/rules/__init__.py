"""Pure rules: no I/O, no clock, no SQL. What they need to know is given to them."""
