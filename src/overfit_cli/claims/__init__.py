"""What claims share: which cells they are judged on, and the rules that give verdicts."""
