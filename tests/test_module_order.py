"""The rule of the order of a module, on examples."""

import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.support.module_order import order_module

ROOT = Path(__file__).parent.parent


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip()


def test_constants_come_first_then_classes_then_functions_and_private_ones_last() -> None:
    given = dedent(
        '''
        """Counts."""

        import re


        def _add() -> None: ...


        def count() -> int:
            return _add() or MOST


        # Few are enough.
        MOST = 3
        """The most."""


        class _Kept:
            """Kept."""


        class Shown:
            """Shown."""
        '''
    )

    assert order_module(given) == dedent(
        '''
        """Counts."""

        import re

        # Few are enough.
        MOST = 3
        """The most."""


        class Shown:
            """Shown."""


        class _Kept:
            """Kept."""


        def count() -> int:
            return _add() or MOST


        def _add() -> None: ...
        '''
    )


@pytest.mark.parametrize(
    "given",
    [
        "class Limits:\n    most = 1\n\n\nNONE = Limits()\n\n\nclass Other:\n    limits = NONE\n",
        "def _read() -> int:\n    return LEAST\n\n\nLEAST = _read\n\n\nclass Other:\n    pass\n",
        "class _Base:\n    pass\n\n\nclass Shown(_Base):\n    pass\n",
        "def _mark(one: type) -> type:\n    return one\n\n\n@_mark\nclass Shown:\n    pass\n",
        "class _Part:\n    pass\n\n\nclass Whole:\n    part: _Part\n",
    ],
    ids=["an instance", "a value of a function", "a base", "a decorator", "an annotation"],
)
def test_definitions_needed_during_import_stay_above(given: str) -> None:
    assert order_module(given) == given


def test_a_statement_with_an_effect_keeps_its_place() -> None:
    given = "FIRST = []\n\n\ndef change() -> None: ...\n\n\nFIRST.append(1)\nLAST = FIRST\n"

    assert order_module(given) == given


def test_every_module_has_its_constants_before_its_classes_and_its_functions_last() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    product = [name for name in listed if not name.startswith(("tests/", "benchmarks/"))]

    out_of_order = [
        name
        for name in product
        if (source := (ROOT / name).read_text()) and order_module(source) != source
    ]

    assert out_of_order == []
