"""What differs between the releases of Triton that are supported."""

import triton

# Triton 3.9: no block pointers any more, descriptors in tuples, other spellings in TTIR.
NEWEST = tuple(int(part) for part in triton.__version__.split(".")[:2]) >= (3, 9)
