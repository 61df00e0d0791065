"""Damaged and hostile files for everything that reads one: each must be one line of error or a success, soon.

python -m tools.fuzz_files --files 10000 --out results/fuzz_files.md
"""
