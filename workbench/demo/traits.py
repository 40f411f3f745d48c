"""What the agents of the KOI demo can do."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable

LONGEST = 200
_SHORT = 4
_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
}


def calculate(expression: str) -> float:
    """Evaluate an arithmetic expression of numbers, + - * / and parentheses."""
    if len(expression) > LONGEST:
        raise ValueError(f"An expression may have at most {LONGEST} characters.")
    return _value(ast.parse(expression, mode="eval").body)


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
    raise ValueError("An expression has numbers, + - * / and parentheses.")


def title(text: str) -> str:
    """Suggest a title for a text: its most frequent long words."""
    words = [word.strip(".,;:!?").lower() for word in text.split()]
    frequent = Counter(word for word in words if len(word) > _SHORT).most_common(3)
    return " ".join(word for word, _ in frequent).capitalize() or "Untitled"
