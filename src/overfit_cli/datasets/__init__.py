"""Readers of public data sets, from the files that their authors published."""
