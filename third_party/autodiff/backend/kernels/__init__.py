"""The user's kernel, as it comes: its wrappers, its descriptors, what cannot be differentiated."""
