"""Run the Python blocks of pages, and write what they print into the blocks called "output" that follow them.

python docs/_ext/page_code.py                # all pages
python docs/_ext/page_code.py docs/tutorial.md
"""

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
# A cluster and its files: tests/test_dask.py runs the same calls against a real one.
NEEDS_A_CLUSTER = ("dask", "joblib.parallel_config")


def prepare_files(folder: Path) -> None:
    """Write the file of predictions that the pages speak of."""
    import numpy as np
    import pandas

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"y": rng.integers(0, 2, 600), "sex": rng.choice(["f", "m"], 600)})
    frame["race"] = rng.choice(["a", "b"], 600)
    for j in range(4):
        lean = 0.05 * j * (frame["sex"] == "m")
        frame[f"m_{j}"] = np.clip(0.3 + 0.4 * frame["y"] + lean + rng.normal(0, 0.2, 600), 0, 1)
    frame.to_parquet(folder / "predictions.parquet")


def run(page: Path, folder: Path) -> Iterator[tuple[str, str | None]]:
    """Run the Python blocks of a page in order, in a folder, and yield what each printed and what the page shows."""
    import matplotlib.pyplot
    from threadpoolctl import threadpool_limits

    matplotlib.pyplot.switch_backend("Agg")
    fences = FENCE.findall(page.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    # Small models: threads that wait for each other on a busy machine cost more than they bring.
    with chdir(folder), threadpool_limits(1):
        prepare_files(folder)
        for (language, code), (following, text) in zip(fences, [*fences[1:], ("", "")], strict=True):
            if language != "python":
                continue
            program = compile(code, page.name, "exec")
            printed = io.StringIO()
            if not any(word in code for word in NEEDS_A_CLUSTER):
                with redirect_stdout(printed):
                    exec(program, names)
            yield printed.getvalue(), text if following == "output" else None
    matplotlib.pyplot.close("all")


def refresh(page: Path) -> None:
    """Write what the blocks of a page print into the page."""
    with tempfile.TemporaryDirectory() as folder:
        printed = [text for text, shown in run(page, Path(folder)) if shown is not None]
    outputs = iter(printed)

    def replaced(match: re.Match[str]) -> str:
        return f"```output\n{next(outputs).rstrip()}\n```" if match[1] == "output" else match[0]

    page.write_text(FENCE.sub(replaced, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted(DOCS.glob("*.md")):
        if "```output" in path.read_text(encoding="utf-8"):
            refresh(path.resolve())
            print(path.name)
