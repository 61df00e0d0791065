"""Random small problems through identify, quantify and optimize, held against slow and obvious references.

    python -m tools.random_problems --problems 100000 --jobs 2 --out results/random_problems.md

Problem number i of a seed is the same whatever the number of problems and jobs: ``--only i`` repeats it alone.
"""
