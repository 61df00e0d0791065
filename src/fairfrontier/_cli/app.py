"""The commands and their options; each hands over to a module that does the work.

Those modules are imported inside the commands, so that `--help`, `--version` and a mistyped option answer at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from fairfrontier._cli.output import check_inputs, check_output, writing
from fairfrontier._extras import check_installed
from fairfrontier._version import __version__

app = typer.Typer(
    name="fairfrontier",
    help="How much accuracy does each level of fairness cost, and can you get a better deal from the models you have?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Excel file, one row per person.")]
Label = Annotated[str, typer.Option(help="Column of the true outcome.")]
OptionalLabel = Annotated[
    str | None, typer.Option(help="Column of the true outcome; without it there are selection rates only.")
]
Sensitive = Annotated[
    list[str], typer.Option(help="Column of a sensitive attribute, or bands of one (age:18,40); repeat for several.")
]
Scores = Annotated[
    list[str] | None,
    typer.Option(help="Names or patterns ('m_*') of score columns; repeatable. Default: all other numeric columns."),
]
Positive = Annotated[
    str | None, typer.Option(help="The label's positive value. Default: guessed from its name, and announced.")
]
Fairness = Annotated[
    str,
    typer.Option(
        help="demographic_parity, equal_opportunity, predictive_equality or equalized_odds; impact_ratio, or one of "
        "the others with _ratio. 'impact_ratio against White' compares with one group, '… within job' inside each job."
    ),
]
Accuracy = Annotated[
    str,
    typer.Option(
        help="accuracy, balanced_accuracy, f1, auc, ks, brier, recall_at:0.2, payoff:1:-5 (of true and false "
        "positives); r2 or exp_mse for a number."
    ),
]
WeightText = Annotated[str, typer.Option(help="Weight of each level: uniform, step:0.8, power:2:0.8 or point:0.9.")]
Threshold = Annotated[float, typer.Option(help="A score above it is decision 1.")]
Thresholds = Annotated[
    list[str] | None,
    typer.Option(
        help="A score above it is decision 1: 0.5, or for one model score=600; repeat for several. Default: 0.5; "
        "without --label the median of the scores."
    ),
]
SampleWeight = Annotated[str | None, typer.Option(help="Column of sample weights.")]
MinShare = Annotated[float, typer.Option(help="Groups with a smaller share of the rows are shown and not judged.")]
Confidence = Annotated[float, typer.Option(help="Confidence of all intervals.")]
Mode = Annotated[str, typer.Option(help="Several attributes: separate, or intersectional (their cross product).")]
MinFairness = Annotated[float, typer.Option(help="The level of fairness that the recommendation is about.")]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates the columns of a CSV file. Default: detected from the file.")
]
Title = Annotated[str | None, typer.Option(help="Title of the report.")]
Out = Annotated[Path, typer.Option(help="Folder for the results; created if it is not there.")]
ChunkRows = Annotated[
    int | None,
    typer.Option(help="Read the file in chunks of this many rows: for files larger than memory. No intervals then."),
]
Missing = Annotated[
    str, typer.Option(help="Rows without a label, group or score: error, drop, or group (a group of their own).")
]
MinGroup = Annotated[int, typer.Option(help="Groups with fewer rows are shown and not judged.")]
Reference = Annotated[
    list[str] | None, typer.Option(help="Compare with this group, such as sex=Male. Default: the highest rate.")
]
Baseline = Annotated[str | None, typer.Option(help="The model in use, which the findings are about.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV file. Default: UTF-8, or detected from the file.")]
Force = Annotated[
    bool, typer.Option("--force", help="Replace results that are already there; what is not written anew is removed.")
]


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"fairfrontier {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def audit(
    file: File,
    sensitive: Sensitive,
    out: Out,
    label: OptionalLabel = None,
    scores: Scores = None,
    positive: Positive = None,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    weight: WeightText = "step:0.8",
    threshold: Thresholds = None,
    confidence: Confidence = 0.95,
    sensitive_mode: Mode = "separate",
    min_fairness: MinFairness = 0.95,
    delimiter: Delimiter = None,
    title: Title = None,
    stack: Annotated[bool, typer.Option(help="Say what a fair stack of the models would reach.")] = True,
    chunk_rows: ChunkRows = None,
    missing: Missing = "error",
    min_group: MinGroup = 30,
    min_share: MinShare = 0.0,
    sample_weight: SampleWeight = None,
    reference: Reference = None,
    baseline: Baseline = None,
    encoding: Encoding = None,
    form: Annotated[
        str, typer.Option("--format", help="Without --label: report, or ll144 (adds New York City's table).")
    ] = "report",
    xlsx: Annotated[bool, typer.Option("--xlsx", help="Also write one Excel workbook with all tables.")] = False,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print the report as PDF, with an installed Chromium or Chrome.")
    ] = False,
    force: Force = False,
) -> None:
    """Evaluate every model of a file: which are Pareto-optimal, and what does fairness cost?"""
    words = locals()
    check_installed("pyarrow", "jinja2", extra="cli", purpose="audit")
    from fairfrontier._cli import console as terminal
    from fairfrontier._cli.audit import run_audit
    from fairfrontier._cli.options import AuditOptions, check_form
    from fairfrontier.metrics._contrasts import named_measure
    from fairfrontier.report._outputs import left_over, output_names, write_results

    ll144 = check_form(form, label=label, sample_weight=sample_weight)
    differences = baseline is not None and accuracy == "accuracy" and label is not None
    labelled, whole = label is not None, chunk_rows is None and sample_weight is None
    measure = named_measure(fairness, parameter="--fairness")
    strata = labelled and whole and measure.within is not None and not measure.needs_labels
    outputs = output_names(labelled=labelled, differences=differences, strata=strata, xlsx=xlsx, pdf=pdf, ll144=ll144)
    check_output(out, outputs, force=force)
    check_inputs(out, outputs, file)
    options = AuditOptions.given(words)
    console = terminal.make_console()
    with terminal.progress_bar(shown=chunk_rows is not None) as progress:
        summary = run_audit(options, stack=stack, progress=progress)
    removed = left_over(out, outputs, source=file) if force else []
    with writing(out, force=force, remove=removed) as folder:
        write_results(summary, folder, xlsx=xlsx, pdf=pdf, ll144=ll144)
    (terminal.print_summary if label is not None else terminal.print_rates)(console, summary)
    terminal.print_files(console, out, outputs, removed)


@app.command()
def stack(
    file: File,
    label: Label,
    sensitive: Sensitive,
    out: Out,
    tau: Annotated[float | None, typer.Option(help="Largest score bias of the stack.")] = None,
    min_fairness: Annotated[
        float | None,
        typer.Option(help="Least fairness of the stack: delivered half of the time; for more see --confidence."),
    ] = None,
    scores: Scores = None,
    positive: Positive = None,
    fairness: Fairness = "demographic_parity",
    accuracy: Accuracy = "accuracy",
    weight: WeightText = "step:0.8",
    threshold: Threshold = 0.5,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Promise --min-fairness with this confidence, on rows set aside for it; also that of all intervals.",
            show_default="0.95 for intervals, no promise",
        ),
    ] = None,
    sensitive_mode: Mode = "separate",
    delimiter: Delimiter = None,
    title: Title = None,
    test_size: Annotated[
        float, typer.Option(help="Share of the rows that the stack is evaluated on, in tenths.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    chunk_rows: ChunkRows = None,
    missing: Missing = "error",
    min_group: MinGroup = 30,
    min_share: MinShare = 0.0,
    sample_weight: SampleWeight = None,
    reference: Reference = None,
    baseline: Baseline = None,
    encoding: Encoding = None,
    force: Force = False,
) -> None:
    """Fit a fair stack of the models on one part of a file and evaluate it on the rest."""
    words = locals()
    check_installed("pyarrow", "jinja2", "skops", extra="cli", purpose="stack")
    from fairfrontier._cli import console as terminal
    from fairfrontier._cli.audit import STACK_OUTPUTS, run_stack, write_stack
    from fairfrontier._cli.options import AuditOptions
    from fairfrontier.report._outputs import left_over

    check_output(out, STACK_OUTPUTS, force=force)
    check_inputs(out, STACK_OUTPUTS, file)
    defaults = {
        "confidence": 0.95 if confidence is None else confidence,
        "min_fairness": 0.95 if min_fairness is None else min_fairness,
    }
    options = AuditOptions.given(words, threshold=(str(threshold),), **defaults)
    with terminal.progress_bar(shown=chunk_rows is not None) as progress:
        chosen = {"tau": tau, "min_fairness": min_fairness, "confidence": confidence}
        summary, fitted = run_stack(options, **chosen, test_size=test_size, seed=seed, progress=progress)
    removed = left_over(out, STACK_OUTPUTS, source=file) if force else []
    with writing(out, force=force, remove=removed) as folder:
        write_stack(summary, fitted, folder)
    console = terminal.make_console()
    terminal.print_summary(console, summary)
    terminal.print_files(console, out, STACK_OUTPUTS, removed)


@app.command()
def apply(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `stack` or `search` wrote: model.skops.")],
    file: File,
    out: Annotated[Path, typer.Option(help="CSV file for score and decision of every row.")],
    keep: Annotated[
        list[str] | None, typer.Option(help="Column to copy beside the score, such as an identifier; repeatable.")
    ] = None,
    chunk_rows: Annotated[int | None, typer.Option(help="Rows that are scored at once. Default: about 32 MB.")] = None,
    force: Force = False,
) -> None:
    """Score a new file with a saved stack or search, by the names of its columns and in the labels of the old file."""
    check_installed("pyarrow", "skops", extra="cli", purpose="apply")
    from fairfrontier._cli import console as terminal
    from fairfrontier._cli.apply import run_apply

    folder = out.absolute().parent
    check_inputs(folder, (out.name,), model, file)
    check_output(folder, (out.name,), force=force)
    with writing(folder, force=force) as scratch:
        applied = run_apply(model, file, scratch / out.name, keep=tuple(keep or ()), chunk_rows=chunk_rows)
    terminal.print_applied(terminal.make_console(), applied, out)


# Options of `search` that `FairSearch` has under the same names.
_SEARCH_WORDS = (
    "fairness",
    "min_fairness",
    "min_ratio",
    "margin",
    "confidence",
    "sensitive_mode",
    "threshold",
    "use_sensitive",
)


@app.command()
def search(
    out: Out,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="CSV, Parquet or Excel file of raw features, one row per person."),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the true outcome.")] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Column of a sensitive attribute, or bands of one (age:18,40); repeat for several."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Instead of FILE an embedded data set: adult, bank, compas or default.")
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Column of the model in use: scores or decisions. Default: the best stack.")
    ] = None,
    margin: Annotated[float, typer.Option(help="How far the accuracy may be below the baseline's.")] = 0.005,
    min_fairness: Annotated[float | None, typer.Option(help="Least fairness of the model.")] = None,
    min_ratio: Annotated[
        float | None, typer.Option(help="Least ratio of the lowest to the highest selection rate.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the verdict and of promises.")] = 0.95,
    time: Annotated[str, typer.Option(help="About how long to search: 90s, 10m, 1h.")] = "10m",
    steps: Annotated[
        int, typer.Option(help="Largest number of training steps; the result depends on seed and steps alone.")
    ] = 13,
    fairness: Fairness = "demographic_parity",
    sensitive_mode: Mode = "separate",
    positive: Positive = None,
    threshold: Threshold = 0.5,
    drop: Annotated[list[str] | None, typer.Option(help="Column that is no feature; repeatable.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Column that is a feature, whatever it looks like; repeatable.")
    ] = None,
    use_sensitive: Annotated[
        bool, typer.Option("--use-sensitive", help="Let the sensitive columns be features, too.")
    ] = False,
    missing: Annotated[str, typer.Option(help="Rows without a label, group or baseline: error or drop.")] = "error",
    min_group: Annotated[int, typer.Option(help="Rows of groups with fewer rows are left out.")] = 1,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    cross_fit: Annotated[
        bool | None,
        typer.Option(
            "--cross-fit/--no-cross-fit",
            help="Two models that test each other's rows, or one that is tested on a quarter of them. Default: two "
            "with fewer than 80,000 rows.",
            show_default=False,
        ),
    ] = None,
    pdf: Annotated[
        bool, typer.Option("--pdf", help="Also print the dossier as PDF, with an installed Chromium or Chrome.")
    ] = False,
    achievable: Annotated[
        bool, typer.Option("--achievable", help="Also estimate the best that any rule could reach with these features.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Threads of training.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of everything.")] = 0,
    force: Force = False,
) -> None:
    """Search a table for a less discriminatory alternative, and certify it; start it again to go on after a stop."""
    words = locals()
    check_installed("pyarrow", "jinja2", "skops", extra="cli", purpose="search")
    from fairfrontier._cli import console as terminal
    from fairfrontier._cli.options import check_seed, parse_delimiter
    from fairfrontier._cli.search import SEARCH_OUTPUTS, parse_duration, run_search, search_table, start_anew
    from fairfrontier._validation import one_of, whole_number
    from fairfrontier.limit._task import LIMIT_MEASURES
    from fairfrontier.report._outputs import find_browser
    from fairfrontier.search import FairSearch
    from fairfrontier.search._summary import PDF
    from fairfrontier.search._training import LEAST_STEPS

    check_output(out, ("summary.json",), force=force)
    check_inputs(out, (*SEARCH_OUTPUTS, PDF, "steps"), file)
    if pdf:
        find_browser("dossier.html")  # now, not after the search
    if achievable:
        one_of(fairness, LIMIT_MEASURES, parameter="--fairness with --achievable")
    seconds = parse_duration(time)
    check_seed(seed)
    max_steps = whole_number(steps, parameter="--steps", low=LEAST_STEPS, high=1000)
    columns = {name: words[name] for name in ("label", "baseline", "positive", "missing", "min_group", "encoding")}
    table = search_table(file, dataset, sensitive=sensitive or (), delimiter=parse_delimiter(delimiter), **columns)
    if force:
        start_anew(out)
    with terminal.step_bar() as progress:
        found = FairSearch(
            **{name: words[name] for name in _SEARCH_WORDS},
            time=seconds,
            max_steps=max_steps,
            drop=(*(drop or ()), *(() if use_sensitive else table.drop)),
            keep=tuple(keep or ()),
            cross_fit="auto" if cross_fit is None else cross_fit,
            n_jobs=jobs,
            random_state=seed,
            folder=out,
            progress=progress,
        )
        summary = run_search(table, found, out, pdf=pdf, achievable=achievable)
    console = terminal.make_console()
    terminal.print_search(console, summary)
    terminal.print_files(console, out, (*SEARCH_OUTPUTS, *([PDF] if pdf else [])))


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that `search` wrote.")],
) -> None:
    """Compute every figure of a search again from its saved decisions, and say what does not agree."""
    check_installed("skops", "jinja2", extra="cli", purpose="verify")
    from fairfrontier._cli import console as terminal
    from fairfrontier._cli.search import run_verify
    from fairfrontier.exceptions import InvalidInputError

    if not folder.is_dir():
        raise InvalidInputError(f"DIR must be a folder that `search` wrote; {str(folder)!r} is not one")
    problems, compared = run_verify(folder)
    terminal.print_verified(terminal.make_console(), problems, compared)
    if problems:
        raise InvalidInputError(f"{len(problems)} of the figures and files do not agree: {problems[0]}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo"), force: Force = False
) -> None:
    """Run the main job on an embedded data set: table, FAUC, a fair stack, a picture and report.html."""
    check_installed("jinja2", "matplotlib", extra="demo", purpose="demo")
    from fairfrontier._cli import console as terminal
    from fairfrontier._cli.demo import DEMO_OUTPUTS, run_demo, save_picture
    from fairfrontier.report._outputs import left_over, write_results

    check_output(out, DEMO_OUTPUTS, force=force)
    console = terminal.make_console()
    console.print("Adult census data: five classifiers and 200 small trees, fairness between genders.")
    summary, points = run_demo()
    removed = left_over(out, DEMO_OUTPUTS) if force else []
    with writing(out, force=force, remove=removed) as folder:
        write_results(summary, folder)
        save_picture(points, folder / "taf.png")
    terminal.print_summary(console, summary)
    terminal.print_files(console, out, DEMO_OUTPUTS, removed)


@app.command()
def datasets() -> None:
    """List the embedded data sets: rows, features, base rate of each group, and the gap."""
    from fairfrontier._cli import console as terminal

    terminal.print_datasets(terminal.make_console())


@app.command()
def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for records, tables and figures; an earlier run in it goes on.")],
    table: Annotated[
        list[str] | None,
        typer.Option(help="dp (Table 1), eo (Table A1) or multi (Table A2); repeatable. Default: all three."),
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Tasks such as adult-gender; repeatable, or with commas. Default: all.")
    ] = None,
    methods: Annotated[
        list[str] | None, typer.Option(help="Methods such as sink-ours; repeatable, or with commas. Default: all.")
    ] = None,
    splits: Annotated[int | None, typer.Option(help="Number of splits. Default: 10; with --quick 2.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Small families and part of the rows: a few minutes.")] = False,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for predictions of base learners. Default: .cache in --out.")
    ] = None,
    redo: Annotated[bool, typer.Option("--redo", help="Run cells again that have a record.")] = False,
    track: Annotated[
        list[str] | None,
        typer.Option(help="in-x (the attribute is a feature) or blind (its columns are removed). Default: both."),
    ] = None,
    grid: Annotated[
        str, typer.Option(help="ours, or paper: the fair learners' parameters as in the paper's supplement.")
    ] = "ours",
    method: Annotated[
        list[str] | None,
        typer.Option(help="Your own learner as one more row: module:Class with fit and predict_proba, or fit_grid."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="A CSV, Parquet or Excel table of features instead of the paper's tasks.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="With --data: the column to predict, with two values.")] = None,
    sensitive: Annotated[str | None, typer.Option(help="With --data: the column of the attribute.")] = None,
    positive: Annotated[str | None, typer.Option(help="With --data: the positive value of the label.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="With --data: a column that is no feature; repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="With --data: a column that is a feature, whatever it tells; repeatable.")
    ] = None,
) -> None:
    """Reproduce the paper's tables, or the whole comparison on your table; a stopped run goes on where it was."""
    check_installed("matplotlib", extra="benchmark", purpose="reproduce")
    from fairfrontier._cli.reproduce import check_splits, listed, run_reproduce, settings_of, user_table
    from fairfrontier.benchmark import TRACKS, Reproduction
    from fairfrontier.benchmark._reproduce import TABLES

    check_output(out, (), force=True)
    run_reproduce(
        Reproduction(
            out=out,
            tables=listed(table) or (TABLES if data is None else ("dp", "eo")),
            tasks=listed(tasks),
            methods=listed(methods),
            tracks=listed(track) or tuple(TRACKS),
            own=listed(method),
            data=user_table(data, label, sensitive, positive, drop, keep),
            splits=tuple(range(check_splits(splits, quick=quick))),
            jobs=jobs,
            settings=settings_of(quick, grid),
            cache=cache,
            redo=redo,
        )
    )


@app.command()
def elicit(
    questions: Annotated[int, typer.Option(help="How many questions to ask; q stops earlier.")] = 15,
    out: Annotated[Path | None, typer.Option(help="Folder for weight.json; without it nothing is written.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a weight that is already there.")] = False,
    seed: Annotated[int, typer.Option(help="Fixes the curves that are asked about.")] = 0,
) -> None:
    """Find the weight function of your own preferences by a few questions."""
    from fairfrontier._cli.elicit import run_elicit

    run_elicit(questions, out, force=force, seed=seed)
