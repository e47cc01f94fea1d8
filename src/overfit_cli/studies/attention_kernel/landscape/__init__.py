"""Loss landscapes of the classifier: the study `kernel-landscape`."""
