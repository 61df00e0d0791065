"""Bad input of the command line: exit code 2, one clear line, nothing written."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairfrontier.cli import main

AUDIT = ("audit", "FILE", "--out", "OUT", "--label", "outcome", "--sensitive", "sex")
STACK = ("stack", *AUDIT[1:])


@dataclass(frozen=True)
class Command:
    """A command that must be refused with one line that matches `says`, which names the option.

    ``FILE`` and ``OUT`` stand for a good file and a folder that is not there.
    """

    name: str
    words: tuple[str, ...]
    says: str

    def message(self, tmp_path, capsys):
        """Return the line."""
        file, out = tmp_path / "p.csv", tmp_path / "nested" / "out"
        rng = np.random.default_rng(0)
        columns = {"outcome": np.arange(40) % 2, "sex": ["f", "m", "m", "f"] * 10, "m_a": rng.random(40)}
        pd.DataFrame(columns | {"m_b": rng.random(40)}).to_csv(file, index=False)
        assert main([{"FILE": str(file), "OUT": str(out)}.get(word, word) for word in self.words]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert not out.parent.exists()
        return shown.err.removesuffix("\n")


COMMAND_CASES = [
    Command("audit: weight of an unknown kind", (*AUDIT, "--weight", "steep:0.8"), r"--weight must be 'uniform'"),
    Command("audit: weight out of range", (*AUDIT, "--weight", "step:1.5"), r"--weight step:1.5: minimum must be in"),
    Command(
        "audit: unknown fairness", (*AUDIT, "--fairness", "demografic_parity"), r"--fairness .* did you mean 'demogr"
    ),
    Command("audit: unknown accuracy", (*AUDIT, "--accuracy", "acuracy"), r"--accuracy .* did you mean 'accuracy'\?"),
    Command("audit: threshold above 1", (*AUDIT, "--threshold", "1.5"), r"threshold must be in \[0, 1\], the range"),
    Command("audit: threshold of text", (*AUDIT, "--threshold", "high"), r"threshold"),
    Command("audit: threshold NaN", (*AUDIT, "--threshold", "nan"), r"--threshold must be a number.*got 'nan'"),
    Command("audit: confidence 1", (*AUDIT, "--confidence", "1"), r"--confidence must be in \(0, 1\)"),
    Command("audit: fairness in per cent", (*AUDIT, "--min-fairness", "95"), r"--min-fairness must be in \[0, 1\]"),
    Command("audit: unknown class", (*AUDIT, "--positive", "yes"), r"--positive must be one of '0' and '1'; got 'yes'"),
    Command(
        "audit: label as attribute", (*AUDIT, "--sensitive", "outcome"), r"--sensitive must name other columns than"
    ),
    Command("audit: unknown mode", (*AUDIT, "--sensitive-mode", "both"), r"--sensitive-mode must be one of"),
    Command("audit: unknown option", (*AUDIT, "--colour", "red"), r"No such option.*--colour"),
    Command("audit: long delimiter", (*AUDIT, "--delimiter", "::"), r"--delimiter must be one character"),
    Command("audit: no row a chunk", (*AUDIT, "--chunk-rows", "0"), r"chunk.rows must be"),
    Command("audit: no such score", (*AUDIT, "--scores", "m_c"), r"--scores must name a column of p.csv; got 'm_c'"),
    Command("audit: no attribute", AUDIT[:6], r"--sensitive"),
    Command(
        "audit: a threshold twice",
        (*AUDIT, "--threshold", "0.5", "--threshold=0.5"),
        r"--threshold must be .*each once",
    ),
    Command("audit: chunk beyond 64 bits", (*AUDIT, "--chunk-rows", "9" * 30), r"--chunk-rows must be in"),
    Command("audit: unknown model in use", (*AUDIT, "--baseline", "m_x"), r"--baseline must be one of"),
    Command("audit: unknown reference", (*AUDIT, "--reference", "sex=x"), r"--reference sex= must be one of"),
    Command("audit: unknown policy", (*AUDIT, "--missing", "skip"), r"--missing must be one of"),
    Command("audit: unknown encoding", (*AUDIT, "--encoding", "latin9000"), r"encoding must be"),
    Command("stack: seed below 0", (*STACK, "--seed", "-1"), r"--seed must be in"),
    Command("stack: seed beyond 64 bits", (*STACK, "--seed", "9" * 30), r"--seed must be in"),
    Command("apply: no model", ("apply", "nobody.skops", "FILE", "--out", "OUT/s.csv"), r"nobody.skops"),
    Command("audit: no file", ("audit", "nobody.csv", *AUDIT[2:]), r"nobody.csv"),
    Command("stack: tau below 0", (*STACK, "--tau", "-0.1"), r"--tau must be"),
    Command("stack: tau NaN", (*STACK, "--tau", "nan"), r"--tau must be"),
    Command(
        "stack: two operating points", (*STACK, "--tau", "0.1", "--min-fairness", "0.9"), r"--tau .*--min-fairness"
    ),
    Command("stack: no test rows", (*STACK, "--test-size", "0"), r"--test-size must be"),
    Command("stack: fairness above 1", (*STACK, "--min-fairness", "1.1"), r"--min-fairness must be in \[0, 1\]"),
    Command("stack: unknown measure", (*STACK, "--fairness", "parity"), r"--fairness must be one of"),
    Command("reproduce: unknown table", ("reproduce", "--out", "OUT", "--table", "dq"), r"--table|tables? must be"),
    Command("reproduce: unknown task", ("reproduce", "--out", "OUT", "--tasks", "adult"), r"--tasks|tasks? must be"),
    Command(
        "reproduce: unknown method", ("reproduce", "--out", "OUT", "--methods", "ours"), r"--methods|methods? must be"
    ),
    Command(
        "reproduce: no split", ("reproduce", "--out", "OUT", "--splits", "0"), r"--splits must be at least 1; got 0"
    ),
    Command("unknown command", ("audits",), r"No such command.*audits"),
]
