"""The example of the paper's panels C and D draws a picture."""

import importlib.util
from pathlib import Path

import matplotlib.image
import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "fairstacks_panels.py"


@pytest.mark.slow
def test_panels_are_drawn(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("fairstacks_panels", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    out = example.main(["--small", "--out", str(tmp_path / "new" / "panels.png")])
    picture = matplotlib.image.imread(out)
    assert picture.shape[:2] == (780, 1875)
    for half in (picture[:, :900, :3], picture[:, 975:, :3]):  # both panels hold coloured ink
        assert ((half.max(axis=2) - half.min(axis=2)) > 0.3).sum() > 500
    assert "22 base models" in capsys.readouterr().out
