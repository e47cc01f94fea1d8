"""The paper's predictions, and its quantities read off cells."""
