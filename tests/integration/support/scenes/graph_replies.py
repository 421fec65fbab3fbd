"""Replies of a tuned graph model in this process, without a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sleuth.agents.graph_encoder.encoder import graph_texts, is_graph_model, load, read_graph
from sleuth.agents.model import Message
from sleuth.studio.model_server.adapter import merge
from sleuth.studio.training.graph_llm import prompt_ids
from sleuth.studio.training.roles.tuning.batches import prompt_token_ids
from sleuth.tools.search.vectors import Embedder

if TYPE_CHECKING:
    import torch


class Replies:
    """A base model with the adapter of a folder, and its encoder where it is a graph model.

    `exact` computes in float32 with the weights that a server would use, in bfloat16.
    """

    def __init__(self, base: Path, folder: Path, embedder: Embedder, *, exact: bool = False) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(base, local_files_only=True)
        kind: Any = AutoModelForCausalLM
        self.model: Any = kind.from_pretrained(base, local_files_only=True, dtype=torch.bfloat16)
        merge(self.model, folder)
        self.model = self.model.to("cuda" if torch.cuda.is_available() else "cpu", torch.float32 if exact else None)
        self.encoder = load(folder)[0] if is_graph_model(folder) else None
        self.embedder = embedder

    def say(self, messages: Sequence[Message], *, tokens: int, encode: bool = True) -> str:
        """Return the reply, at most `tokens` long; without `encode` the graph is omitted (ablation)."""
        import torch

        with torch.inference_mode():
            shown = self._shown(messages, encode=encode)
            ids = self.model.generate(
                inputs_embeds=shown,
                attention_mask=torch.ones(shown.shape[:2], dtype=torch.long, device=shown.device),
                max_new_tokens=tokens,
                do_sample=False,
                pad_token_id=self.tokenizer.eos_token_id,
            )[0]
        text: str = self.tokenizer.decode(ids, skip_special_tokens=True)
        return text

    def _shown(self, messages: Sequence[Message], *, encode: bool) -> "torch.Tensor":
        """Return the prompt as vectors, of shape (1, tokens, hidden)."""
        import torch

        def vectors(ids: Sequence[int]) -> "torch.Tensor":
            found: torch.Tensor = self.model.get_input_embeddings()(torch.tensor([ids], device=self.model.device))
            return found

        graph = read_graph(messages)
        if not (encode and graph and self.encoder):
            return vectors(prompt_token_ids(messages, self.tokenizer))
        before, after = prompt_ids(messages, self.tokenizer)
        texts = graph_texts([graph])
        rows = dict(zip(texts, self.embedder.embed_passages(texts), strict=True))
        token = self.encoder.tokens([graph], rows).to(self.model.device, self.model.dtype)
        return torch.cat([vectors(before), token[None], vectors(after)], dim=1)
