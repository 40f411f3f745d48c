"""Requests to models as pure data: who answers them, what they use, what they cost, and what was said."""
