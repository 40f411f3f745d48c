"""Conversations of the operator with models: turns, answers and their frames (spec 4).

An answer is made by a task of the server, not by a connection. What comes of it is stored as numbered frames before
it is sent, so a reader continues after the last one that it has.
"""

from workbench.services.conversations import answers, conversations, ending, export, frames, models, requests, turns

__all__ = ["answers", "conversations", "ending", "export", "frames", "models", "requests", "turns"]
