"""Looking at it: gradient checks, a corpus of launches, the doctor."""
