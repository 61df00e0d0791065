"""How fast and how small: every figure against a rival that runs in the same process, minutes apart at the most.

Run them with ``python -m benchmarks``. A module ``bench_*.py`` has a function ``rows()`` that yields `Row` objects.
"""
