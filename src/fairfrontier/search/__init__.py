"""From a table to a certified alternative: train, stack, choose, and test on rows that nothing has seen."""

from fairfrontier.search._evidence import Candidate
from fairfrontier.search._fair_search import FairSearch
from fairfrontier.search._model import SearchModel
from fairfrontier.search._summary import summarise_search, verify_search

__all__ = ["Candidate", "FairSearch", "SearchModel", "summarise_search", "verify_search"]
