"""What both sides of a branch store to the same place is stored once."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import chosen_stores as chosen

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rows, columns", [(1, 5), (2, 16), (7, 21)])
@pytest.mark.parametrize("form", chosen.FORMS)
def test_forms(device, form, rows, columns, dtype):
    x = random_tensor(rows, columns, device=device, dtype=dtype)
    w = random_tensor(columns, device=device, dtype=dtype)
    op = differentiated(chosen.chosen_stores_kernel, chosen.chosen_stores)
    assert_gradients_close(op, chosen.chosen_stores_reference, (x, w, form), roundings=16)
