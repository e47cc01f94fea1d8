"""The tokenized mixture model DM1: one relevant token among patterns that say nothing."""
