"""Operations as registered operators of PyTorch, also for DTensors."""
