"""The tool that puts small faults into the library, of which ``results/mutants.md`` has the figures."""

import ast
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.mutants.mutate import instrumented, mutant, places

SOURCE = '''"""Words."""

LIMIT: int = 3


def inside(x, y=1.5):
    """Words 1 + 1."""
    if not x > LIMIT and y:
        raise ValueError(f"{x + 1}")
    total = -x + 2 * y
    return total
'''


def test_each_place_is_one_change_that_compiles():
    found = places(SOURCE)
    texts = [mutant(SOURCE, place.number) for place in found]
    assert len(set(texts)) == len(texts)
    for text in texts:
        compile(text, "mutant", "exec")
        before, after = ast.unparse(ast.parse(SOURCE)).splitlines(), text.splitlines()
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    changes = [(place.line, place.change) for place in found]
    for expected in (
        (3, "`3` → `4`"),
        (6, "`1.5` → `2.5`"),
        (8, "`not x > LIMIT` → `x > LIMIT`"),
        (8, "`x > LIMIT` → `x >= LIMIT`"),
        (8, "`not x > LIMIT and y` → `not x > LIMIT or y`"),
        (10, "`-x + 2 * y` → `-x - 2 * y`"),
        (10, "`-x` → `x`"),
        (10, "`2 * y` → `2 / y`"),
        (11, "`return total` → `return None`"),
    ):
        assert expected in changes
    assert all(line not in (1, 7, 9) for line, _ in changes)


def test_statements_say_that_they_were_reached():
    import builtins

    builtins.reached = set()
    try:
        names = {}
        exec(instrumented(SOURCE, "m"), names)
        assert names["inside"](5) == -2.0
        assert builtins.reached == {("m", 8), ("m", 10), ("m", 11)}
    finally:
        del builtins.reached
    assert {place.statement for place in places(SOURCE)} == {0, 8, 10, 11}
