"""Launches as modules of their own, which import torch and triton alone."""
