"""Small faults put into the library one at a time: how many of them do the tests notice?

python -m tools.mutants --each 60 --records results/mutants.jsonl --out results/mutants.md

mutmut and cosmic-ray start Python and import everything for each fault, and run all tests. Here one process has
imported the other libraries once and forks for each fault, and only tests that reach the changed statement are run.
"""
