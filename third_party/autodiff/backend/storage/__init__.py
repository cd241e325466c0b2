"""Tensors and their memory: layouts, addresses, buffers, who wrote last."""
