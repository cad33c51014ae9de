"""The model of the articles' programs is right."""

import numpy as np
from article import features, gradients


def test_gradients_of_the_model_are_right():
    """Compares with finite differences."""
    weights = np.array([0.3, -0.2, 0.1])

    def loss(at):
        return 0.5 * (features([5]) @ at - 5) ** 2

    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        slope = ((loss(weights + step) - loss(weights - step)) / 2e-6).item()
        assert np.isclose(gradients(weights, [5])[0, i], slope)
