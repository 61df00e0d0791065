"""Is the fairness that is asked for the fairness that is delivered? A study on draws from the embedded data.

`python -m tools.promise_study run` adds records to a file, and `python -m tools.promise_study page` writes what they
say to `results/promise.md`. A run that was stopped goes on where it was.
"""
