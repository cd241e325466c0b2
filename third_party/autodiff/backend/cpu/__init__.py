"""The CPU backend of Triton: options, and objects of native code.

The classes that Triton looks for are in `compiler.py` and `driver.py` of the package.
"""

TARGET = "cpu"
