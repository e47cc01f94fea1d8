"""Shared parts of claims: the cells they are judged on, and the rules that give verdicts."""
