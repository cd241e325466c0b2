"""Launches in graphs of PyTorch: Dynamo, Inductor, AOTAutograd."""
