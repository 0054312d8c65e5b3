"""scikit-learn's face of it: parameters, classifier, regressor, stack, images, basic PIL, updates."""
