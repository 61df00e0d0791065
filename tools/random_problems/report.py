"""The page of results."""

import platform
import sys
from importlib.metadata import version

from tools.random_problems.tally import Tally

PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "moocore", "clarabel", "fairfrontier")


def page(tally: Tally, *, seed: int, jobs: int) -> str:
    """Return the results as Markdown."""
    compared = sum(line.count for line in tally.lines.values())
    stopped = len(tally.crashes)
    lines = [
        "# Random small problems",
        "",
        f"{tally.problems:,} problems (seed {seed}, numbers 0 to {tally.problems - 1:,}) went through identify,",
        f"quantify and optimize, and {compared:,} results were held against slow and obvious references:",
        f"**{stopped} crashes, {tally.mismatches} mismatches**. A warning counts as a crash.",
        "",
        f"    python -m tools.random_problems --problems {tally.problems} --seed {seed} --jobs {jobs}",
        "",
        "repeats it, and `--only NUMBER` a single problem. A problem has 4 to 40 rows, 1 to 8 models and 1 or 2",
        "attributes of 2 to 4 groups, with tied scores, constant and duplicated models, rare and empty groups, zero",
        "weights, five measures of fairness (one of them overlapping masks), five of accuracy, ridges from 0 to 10⁴.",
        "",
        "Each number is also that of a larger problem (40 to 560 rows, 2 to 60 groups, folds that may lack a group),",
        "whose points, and for every tenth a tuned stack, are computed again from other containers, in another order",
        "of the rows, with other names of groups and labels, other scales of weights and scores, in chunks cut",
        "anywhere and, for every tenth, from Dask.",
        "",
        "| check | comparisons | largest deviation | in problem | tolerance | mismatches |",
        "|---|---|---|---|---|---|",
    ]
    for check, line in sorted(tally.lines.items()):
        where = f"{line.problem:,}" if line.problem >= 0 else "none"
        lines.append(
            f"| {check} | {line.count:,} | {line.largest:.1e} | {where} | {line.tolerance:g} | {line.mismatches} |"
        )
    lines += ["", "Refused with an error that names the parameter, as they must be, or left out as the line says:", ""]
    lines += [f"- {why}: {count:,} problems" for why, count in sorted(tally.refused.items())]
    for check, line in sorted(tally.lines.items()):
        if line.mismatches:
            lines += ["", f"Mismatches of {check!r} in the problems {line.named}."]
    for index, error in tally.crashes[:20]:
        lines += ["", f"Crash in problem {index}: `{error}`"]
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    lines += [
        "",
        f"{tally.cpu_seconds / 60:.1f} CPU minutes in {jobs} process(es) with one BLAS thread each. Python",
        f"{sys.version.split()[0]} on {platform.system()} {platform.machine()}; {versions}.",
        "",
    ]
    return "\n".join(lines)
