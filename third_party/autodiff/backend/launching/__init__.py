"""A launch, from the user's call to a node of autograd's graph."""
