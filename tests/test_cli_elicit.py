"""`fairfrontier elicit`: answers on standard input, a weight out."""

import json
import subprocess
import sys

import numpy as np

import fairfrontier as ff
from fairfrontier.cli import main
from fairfrontier.quantify._elicitation import Questionnaire


def run(answers, *arguments):
    command = [sys.executable, "-c", "import sys; from fairfrontier.cli import main; sys.exit(main(sys.argv[1:]))"]
    return subprocess.run(
        [*command, "elicit", *arguments], input=answers, capture_output=True, text=True, check=False, timeout=120
    )


def test_the_weight_is_that_of_the_answers(tmp_path):
    result = run("1\n2\nmaybe\n1\ns\n2\n", "--questions", "5", "--out", str(tmp_path / "mine"), "--seed", "3")
    assert result.returncode == 0, result.stderr
    assert "Please answer 1, 2, s" in result.stdout
    saved = json.loads((tmp_path / "mine" / "weight.json").read_text())
    asked = Questionnaire(random_state=3)
    for first in (True, False, True):
        asked.answer(asked.next_question(), prefers_first=first)
    skipped = asked.next_question()
    asked.skip(skipped)
    last = asked.next_question()
    assert last.names != skipped.names
    asked.answer(last, prefers_first=False)
    expected = asked.fit().weight
    np.testing.assert_allclose(saved["knots"], expected.knots)
    np.testing.assert_allclose(saved["values"], expected.values, atol=1e-9)
    assert ff.fauc(ff.taf_curve([0.5, 1.0], [0.9, 0.6]), ff.TabulatedWeight(**saved)) > 0.6 - 1e-9


def test_no_answer_is_no_weight(tmp_path):
    result = run("q\n", "--out", str(tmp_path / "mine"))
    assert result.returncode == 0
    assert "Without answers there is no weight." in result.stdout
    assert not (tmp_path / "mine" / "weight.json").exists()


def test_bad_options_are_one_line(capsys):
    assert main(["elicit", "--questions", "0"]) == 2
    said = capsys.readouterr().err
    assert "--questions" in said
    assert "Traceback" not in said
