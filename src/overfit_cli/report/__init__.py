"""Claims, verdicts and the report. It knows no paper."""
