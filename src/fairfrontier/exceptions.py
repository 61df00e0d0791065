"""The errors and warnings that fairfrontier raises on purpose."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ClusterError",
    "ConvergenceWarning",
    "DataFileError",
    "FairFrontierError",
    "GroupError",
    "InfeasibleError",
    "InvalidInputError",
    "MissingExtraError",
]


class FairFrontierError(Exception):
    """Base class of every error that fairfrontier raises on purpose."""


class InvalidInputError(FairFrontierError, ValueError):
    """A parameter has a value that it must not have."""


class GroupError(InvalidInputError):
    """A fairness measure is undefined because a group is empty, missing or alone."""


class InfeasibleError(InvalidInputError):
    """No stack of the given models meets the request."""


class MissingExtraError(FairFrontierError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


class DataFileError(FairFrontierError, OSError):
    """A data file is damaged or absent; the message has the command that rebuilds it."""


class ClusterError(FairFrontierError, RuntimeError):
    """The workers of a cluster, or several processes, cannot finish the work; the message says what to change."""


if not TYPE_CHECKING:

    def __getattr__(name):
        if name != "ConvergenceWarning":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # scikit-learn's own, so that one filter serves both; imported here because that takes a second.
        from sklearn.exceptions import ConvergenceWarning

        return ConvergenceWarning
