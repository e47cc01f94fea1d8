"""Claims: what they measure, and the rules that give verdicts."""
