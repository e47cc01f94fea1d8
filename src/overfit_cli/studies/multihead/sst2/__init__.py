"""Sentiment of sentences (SST-2) with RoBERTa: the study `multihead-sst2`."""
