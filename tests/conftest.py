"""What all tests share, and what they need on the oldest supported versions of their tools."""

import numpy as np
from hypothesis import settings
from sklearn import __version__
from sklearn.utils import estimator_checks, get_tags

# A change is judged by the same examples as the one before it; `tools/random_problems` looks for new ones.
settings.register_profile("same examples", derandomize=True)
settings.load_profile("same examples")

if tuple(map(int, __version__.split(".")[:2])) < (1, 7):
    # scikit-learn 1.6 makes two classes of three for an estimator that knows only two: the first row's and the others.
    # Its check of sample weights shuffles one of two equal data sets before it does so, and then fits different labels.
    # From 1.7 on the two classes are the smallest one and the others, in whatever order the rows are, as here.
    _enforce_tags = estimator_checks._enforce_estimator_tags_y

    def _two_classes_in_any_order(estimator, y):
        tags = get_tags(estimator)
        if tags.classifier_tags is None or tags.classifier_tags.multi_class or y.size == 0:
            return _enforce_tags(estimator, y)
        return np.where(y == y.min(), y, y.min() + 1)

    estimator_checks._enforce_estimator_tags_y = _two_classes_in_any_order
