"""Run problems, and count what comes of them."""

import time
import traceback
import warnings
from pathlib import Path

from tools.random_problems import checks, dresses, stacks
from tools.random_problems.problems import random_problem
from tools.random_problems.tally import Tally


def run(indices: range, seed: int, *, raises: bool = False) -> Tally:
    """Return the tally of some problems; `raises` lets the first crash through."""
    start, tally = time.process_time(), Tally()
    for index in indices:
        tally.index = index
        tally.problems += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                # Problems have scores of any size and groups named by numbers; these words are meant for features.
                for words in (
                    "estimators='precomputed' takes the columns of X",
                    "sensitive_features.* different numbers",
                ):
                    warnings.filterwarnings("ignore", words, UserWarning)
                problem = random_problem(seed, index)
                if checks.check(problem, index, tally) is not None:
                    stacks.check(problem, index, tally)
                dresses.check(seed, index, tally)
        except Exception as error:  # whatever it is, it is counted and named, and the other problems go on
            if raises:
                raise
            where = traceback.extract_tb(error.__traceback__)[-1]
            tally.crashes.append(
                (index, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")
            )
    tally.cpu_seconds = time.process_time() - start
    return tally
