"""What other nodes send: their requests are checked and answered."""

from workbench.services.personalities.receiving.answers import answer, check, protocol_error

__all__ = ["answer", "check", "protocol_error"]
