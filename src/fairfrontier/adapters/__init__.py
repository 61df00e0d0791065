"""Work with other libraries: read the models that they fitted, score inside scikit-learn, log to MLflow.

`points` and `predictions` read fitted objects of Fairlearn, OxonFair, scikit-learn and fairfrontier itself, each with
all the models inside it; `read_aif360` reads AIF360's data sets; `make_fauc_scorer` is FAUC for `cross_validate` and
searches; `log_mlflow` logs a trade-off to a run. None of these libraries is imported before it is needed.
"""

from fairfrontier.adapters._libraries import AIF360Data, read_aif360
from fairfrontier.adapters._mlflow import log_mlflow
from fairfrontier.adapters._models import points, predictions
from fairfrontier.adapters._scorer import FAUCScorer, make_fauc_scorer

__all__ = ["AIF360Data", "FAUCScorer", "log_mlflow", "make_fauc_scorer", "points", "predictions", "read_aif360"]
