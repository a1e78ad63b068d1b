"""The tool `calculator`."""

import ast
import operator
from collections.abc import Callable, Mapping
from decimal import (
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    Underflow,
    getcontext,
    localcontext,
)

from pydantic import BaseModel, Field

from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.tool import Tool

_LONGEST = 200
_LARGEST_EXPONENT = 100
_LARGEST = Decimal("1e100")
_PRECISION = 28
_CONTEXT = Context(
    prec=_PRECISION,
    Emin=-_LARGEST_EXPONENT,
    Emax=_LARGEST_EXPONENT,
    traps=[InvalidOperation, DivisionByZero, Overflow, Underflow],
)
"""Limits every number, including literals. Otherwise, a short literal such as 1e999999 would need a
million digits when it is converted.
"""

_BINARY: Mapping[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Decimal], Decimal]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
_FUNCTIONS: Mapping[str, Callable[..., Decimal]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "round": lambda value, digits=Decimal(0): _round(value, digits),
    "sqrt": Decimal.sqrt,
    "sum": lambda *values: sum(values, Decimal(0)),
}


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """An arithmetic expression."""

    expression: str = Field(
        min_length=1, max_length=_LONGEST, description="such as '0.04 * 20000000' or 'max(3, 5)'"
    )


class Output(BaseModel, frozen=True):
    """The value of an expression, as a decimal number."""

    expression: str
    value: str


class Calculator(Tool[Inputs, Output]):
    """Evaluates decimal arithmetic. The expression is never executed as code."""

    name = "calculator"
    aliases = ("calculate",)
    description = (
        "Compute an arithmetic expression with + - * / // % **, parentheses, "
        "abs, min, max, round, sqrt and sum. Percentages are written as numbers: 4 % is 0.04."
    )
    inputs = Inputs
    output = Output
    is_source = True

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        value = compute(inputs.expression)
        return Output(expression=inputs.expression, value=f"{value.normalize():f}")

    def render(self, output: Output) -> str:
        return f"{output.expression} = {output.value}"


def compute(expression: str) -> Decimal:
    """Return the value of an arithmetic expression; raises `InvalidInput`."""
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        with localcontext(_CONTEXT):
            value = _compute(tree.body, expression)
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
        raise InvalidInput(f"{expression!r} is not an arithmetic expression") from error
    except (DecimalException, ZeroDivisionError) as error:
        raise InvalidInput(f"{expression!r} has no value: {type(error).__name__}") from error
    if not value.is_finite() or abs(value) > _LARGEST:
        raise InvalidInput(f"a value in {expression!r} exceeds 1e100")
    return value


def _compute(node: ast.expr, expression: str) -> Decimal:
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Constant(value=int() | float()):
            # Parse the source text instead of the float, so that 0.1 is exact.
            written = ast.get_source_segment(expression.strip(), node)
            return getcontext().create_decimal((written or "").replace("_", ""))
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_compute(operand, expression))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _raise_power(_compute(left, expression), _compute(right, expression))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            return _BINARY[type(sign)](_compute(left, expression), _compute(right, expression))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*[_compute(argument, expression) for argument in arguments])
        case _:
            pass
    part = ast.get_source_segment(expression.strip(), node) or type(node).__name__
    raise InvalidInput(f"expected numbers, + - * / // % ** and functions, found {part[:80]!r}")


def _round(value: Decimal, digits: Decimal) -> Decimal:
    if abs(digits) > _PRECISION:
        raise InvalidInput(f"expected at most {_PRECISION} digits to round to, found {digits}")
    return round(value, int(digits))


def _raise_power(value: Decimal, exponent: Decimal) -> Decimal:
    if abs(exponent) > _LARGEST_EXPONENT:
        raise InvalidInput(f"expected an exponent of at most {_LARGEST_EXPONENT}, found {exponent}")
    return value**exponent
