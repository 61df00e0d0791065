"""Bad input gets one clear error: the parameter, what it must be, what came, and what to do.

To cover another module, write a list of cases and add it to `CASES`.
"""

import re

import pytest

import fairfrontier as ff
from fairfrontier.exceptions import GroupError, InvalidInputError

from .bad_commands import COMMAND_CASES
from .bad_inputs import (
    AREA_CASES,
    FRONTIER_CASES,
    GROUP,
    GROUP_CASES,
    LABEL_CASES,
    OPTION_CASES,
    SCORE_CASES,
    SCORES,
    Y,
)
from .bad_stacks import OTHER_CASES, RESAMPLING_CASES, STACK_CASES

CASES = {
    "scores": SCORE_CASES,
    "labels": LABEL_CASES,
    "groups": GROUP_CASES,
    "options": OPTION_CASES,
    "frontier": FRONTIER_CASES,
    "area": AREA_CASES,
    "resampling": RESAMPLING_CASES,
    "stack": STACK_CASES,
    "other": OTHER_CASES,
    "command": COMMAND_CASES,
}


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{module}: {case.name}") for module, cases in CASES.items() for case in cases]
)
def test_one_clear_error(case, tmp_path, capsys):
    message = case.message(tmp_path, capsys)
    assert re.search(case.says, message), message
    assert "\n" not in message
    assert len(message) < 420


@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_cases_have_names_of_their_own(cases):
    assert len({case.name for case in cases}) == len(cases)


def test_fauc_score_checks_like_tradeoff_points():
    with pytest.raises(GroupError, match="sensitive_features"):
        ff.fauc_score(Y, SCORES, sensitive_features=["a"] * 6)
    with pytest.raises(InvalidInputError, match="weight"):
        ff.fauc_score(Y, SCORES, sensitive_features=GROUP, weight="step")


def test_errors_are_also_pythons_own():
    assert issubclass(InvalidInputError, ValueError)
    assert issubclass(GroupError, InvalidInputError)
