"""Claims, verdicts and the report, of any paper."""
