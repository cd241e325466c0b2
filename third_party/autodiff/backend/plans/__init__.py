"""What the compiler answers: requests, plans, and where both are kept."""
