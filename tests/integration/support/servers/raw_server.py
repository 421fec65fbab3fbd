"""Direct requests to a model server, and probabilities from its log-probabilities."""

import math
from collections.abc import Sequence
from typing import Any

import httpx

from sleuth.agents.model import Message


async def chat(url: str, messages: Sequence[Message], **options: Any) -> dict[str, Any]:
    """The first choice of a completion, greedy and with seed 0 by default."""
    async with httpx.AsyncClient(timeout=300) as http:
        name = (await http.get(f"{url}/models")).json()["data"][0]["id"]
        body = {"model": name, "messages": list(messages), "temperature": 0, "seed": 0, **options}
        choice: dict[str, Any] = (
            (await http.post(f"{url}/chat/completions", json=body)).raise_for_status().json()["choices"][0]
        )
        return choice


def probability_of_yes(choice: dict[str, Any]) -> float:
    """P(yes) / (P(yes) + P(no)) among the likeliest first tokens; both have to be there."""
    mass = {"yes": 0.0, "no": 0.0}
    for entry in choice["logprobs"]["content"][0]["top_logprobs"]:
        if (word := entry["token"].strip().lower()) in mass:
            mass[word] += math.exp(entry["logprob"])
    assert min(mass.values()) > 0
    return mass["yes"] / (mass["yes"] + mass["no"])


def perplexity_of_words(choice: dict[str, Any]) -> float:
    """exp(-mean) of the log-probabilities of the words, without the token that ends them."""
    words = [entry for entry in choice["logprobs"]["content"] if entry["token"] != "<|im_end|>"]
    assert "".join(entry["token"] for entry in words) == choice["message"]["content"]
    return math.exp(-sum(entry["logprob"] for entry in words) / len(words))
