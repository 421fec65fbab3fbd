"""Attention by blocks is attention: same values and slopes as PyTorch's own, for any length and grouping of heads."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from training.roles.tuning.attention import BLOCK, blocked


@pytest.mark.parametrize(
    ("length", "heads", "kept"), [(1, 4, 4), (5, 6, 2), (BLOCK, 3, 1), (BLOCK + 1, 6, 2), (2 * BLOCK + 3, 4, 4)]
)
def test_values_and_slopes_are_those_of_causal_attention(length: int, heads: int, kept: int) -> None:
    torch.manual_seed(length + heads)
    query = torch.randn(2, heads, length, 8, dtype=torch.float64, requires_grad=True)
    key, value = (torch.randn(2, kept, length, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    own = blocked(query, key, value, scale=0.3)
    right = scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.3, enable_gqa=True)
    torch.testing.assert_close(own, right)
    weights = torch.randn_like(own)
    slopes = (torch.autograd.grad((each * weights).sum(), (query, key, value)) for each in (own, right))
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)
