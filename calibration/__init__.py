"""Made-up worlds of the claims, in which the truth is known, and the error rates in them."""
