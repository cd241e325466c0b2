"""Host programs: what the host does in a forward and in its backward, step by step."""
