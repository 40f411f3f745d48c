"""Functions as tools: the processes that offer and run them, and how the server knows of them."""
