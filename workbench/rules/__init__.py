"""Pure rules: no I/O, no clock, no SQL. All inputs are arguments."""
