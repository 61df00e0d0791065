"""The README's code runs as it stands, and it keeps what it promises."""

import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_and_gets_what_it_asked_for(capsys):
    import matplotlib

    matplotlib.use("Agg")
    names = {}
    for code in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(compile(code, "README.md", "exec"), names)
    assert "asked" in capsys.readouterr().out
    selection, points = names["fair"].selection_, names["points"]
    assert selection.asked == 0.95 <= selection.estimated
    assert points.names == ("unconstrained", "fair", "constant")
    # The standard error of a difference between these groups is about .025.
    assert points.fairness[1] > max(points.fairness[0], 0.95 - 0.05)
    assert points.accuracy[1] > points.accuracy[2]
    matplotlib.pyplot.close("all")


def test_every_file_it_points_to_is_there():
    links = re.findall(r"\]\(((?!http)[^)#]+)\)", README)
    assert len(links) >= 4
    for link in links:
        assert (Path(__file__).parents[1] / link).exists(), link


def test_it_names_real_commands():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
