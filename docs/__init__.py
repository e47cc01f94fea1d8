"""The documents, and what generates the tables in them."""
