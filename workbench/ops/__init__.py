"""Operations: their callers (`caller`), their definition (`operation`), how they are shown
(`presentation`), what they get (`context`), and `dispatch`."""

from workbench.ops.caller import ANONYMOUS, OPERATOR, SYSTEM, Caller
from workbench.ops.context import Ctx
from workbench.ops.dispatch import authorise, dispatch
from workbench.ops.operation import SAID, Catalogue, Ok, Op, collect, first_problems, functions_of, op, problems_of
from workbench.ops.presentation import Columns, Command, RestRoute

__all__ = [
    "ANONYMOUS",
    "OPERATOR",
    "SAID",
    "SYSTEM",
    "Caller",
    "Catalogue",
    "Columns",
    "Command",
    "Ctx",
    "Ok",
    "Op",
    "RestRoute",
    "authorise",
    "collect",
    "dispatch",
    "first_problems",
    "functions_of",
    "op",
    "problems_of",
]
