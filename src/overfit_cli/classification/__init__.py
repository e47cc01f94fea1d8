"""Classifiers of labelled samples of tokens: what studies of several papers share."""
