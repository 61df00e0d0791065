"""The rows of the tables: what each method is, where it applies, and how it is evaluated on one split."""

from fairfrontier.benchmark._families import ATTRIBUTE, GROUPS
from fairfrontier.benchmark._post_processing import run_peer, run_plug_in
from fairfrontier.benchmark._stacks import SINK, run_constrained, run_fairstacks
from fairfrontier.benchmark._task_data import Evaluated, Method, TaskData, evaluate_both


def run_forest(method: Method, data: TaskData) -> Evaluated:
    """Evaluate the forest itself: the average of its trees."""
    ensemble, test = (data.matrix(method.families, part).mean(axis=1)[:, None] for part in ("ensemble", "test"))
    return evaluate_both(data, ensemble, test, {})


def run_grid(method: Method, data: TaskData) -> Evaluated:
    """Evaluate a fair learner at every value of its parameter."""
    # Reductions give randomised classifiers: their expected decisions have exact expected accuracy and bias.
    threshold = None if method.key.startswith("reductions") else 0.5
    ensemble, test = (data.matrix(method.families, part) for part in ("ensemble", "test"))
    return evaluate_both(data, ensemble, test, {}, threshold)


_STACKS = (
    ("mp", "FS MP Trees", ("minipatch",)),
    ("rf", "FS RF Trees", ("forest",)),
    ("zoo", "FS Classifiers", ("zoo",)),
    ("sink", "FS Kitchen Sink", SINK),
)
_LEARNERS = (
    ("adversarial", "Adversarial Debiasing", "Adversarial Debiasing"),
    ("fagtb", "FAGTB", "FAGTB"),
    ("reductions", "Reductions", "Reductions"),
    ("reductions_boosted", "Reductions, boosted trees", None),
    ("fcsc", "FCSC, boosted trees", None),
    ("kernel", "KDE-regularised network", None),
)
# Post-processing: key, title, families beside the score, whether it is given the attribute.
_POST = (
    ("oxonfair-inferred", "OxonFair, inferred attribute", (GROUPS,), False, run_peer),
    ("linear-post", "LinearPost", (ATTRIBUTE,), False, run_plug_in),
    ("fpir", "FPIR", (ATTRIBUTE,), False, run_plug_in),
    ("oxonfair", "OxonFair", (), True, run_peer),
    ("threshold-optimizer", "ThresholdOptimizer", (), True, run_peer),
    ("linear-post-aware", "LinearPost or FPIR, aware", (), True, run_plug_in),
)
# Methods that fit thresholds of groups with other libraries take any number of groups.
_ANY_GROUPS = ("oxonfair", "threshold-optimizer")
_ROWS = (
    Method("random-forest", "Random Forest", run_forest, ("forest",), "Random Forest"),
    *(
        Method(key, title, run_grid, (key,), row, classifies_only=True, two_groups=key == "fcsc")
        for key, title, row in _LEARNERS
    ),
    *(
        Method(
            key + end,
            title + of,
            run,
            (*base, *families),
            aware=aware,
            classifies_only=True,
            two_groups=key not in _ANY_GROUPS,
        )
        for end, of, base in (("", "", ("zoo",)), ("-sink", " on our sink", (*SINK, ATTRIBUTE)))
        for key, title, families, aware, run in _POST
    ),
    *(
        Method(
            f"{key}-{form}",
            f"{title} ({form})",
            run_fairstacks,
            families if form == "paper" else (*families, ATTRIBUTE),
            title,
        )
        for form in ("paper", "ours")
        for key, title, families in _STACKS
    ),
    Method(
        "sink-aware", "FS Kitchen Sink (ours, attribute-aware)", run_fairstacks, SINK, "FS Kitchen Sink", aware=True
    ),
)
_CONSTRAINED = (
    Method("none", "None", run_forest, ("forest",), "None"),
    *(
        Method(f"rf-{key}-{form}", f"{key.title()} ({form})", run_constrained, ("forest",), key.title())
        for form in ("paper", "ours")
        for key in ("gender", "race", "both")
    ),
)
METHODS: dict[str, dict[str, Method]] = {
    "dp": {method.key: method for method in _ROWS},
    "eo": {method.key: method for method in _ROWS},
    "multi": {method.key: method for method in _CONSTRAINED},
}
# The row of each table that the others are compared with.
CHAMPIONS = {"dp": "sink-ours", "eo": "sink-ours", "multi": "rf-both-ours"}
