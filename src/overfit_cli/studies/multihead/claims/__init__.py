"""What the claims of both data models measure."""
