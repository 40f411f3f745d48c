"""Who a caller is and what may be used at all: tokens, tool permissions, personas."""
