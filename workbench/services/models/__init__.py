"""Models behind the gateway: the person's keys, and the tokens by which boxes ask for models without a key.

- `keys`: which provider answers, and with which key
- `tokens`: the token of an attempt's command
"""

from workbench.services.models import keys, tokens

__all__ = ["keys", "tokens"]
