"""A tiny model of the embedded one's architecture, and prompts with triples for a graph model, with their replies."""

from pathlib import Path
from typing import Any

from sleuth.agents.formatting import Facts, SubQuery, format_fact
from sleuth.agents.model import Message
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.roles.inputs import QuestionInput
from sleuth.agents.roles.planning import BEGIN, NEXT, SoFar
from sleuth.agents.roles.reading import ANSWER_FROM_FACTS
from sleuth.tools.types import Triple

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_model(folder: Path, **sizes: int) -> Path:
    """The folder, with a checkpoint in it; `sizes` are those of its configuration that are to be others."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    bytes_alone = Tokenizer(models.BPE({sign: at for at, sign in enumerate(alphabet)}, []))
    bytes_alone.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_alone.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bytes_alone, bos_token="<|im_start|>", eos_token="<|im_end|>", chat_template=TEMPLATE
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "num_key_value_heads": 1, **sizes}
    wide = {"initializer_range": 0.3}  # with the usual small weights no output could be likely, whatever is learned
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = LlamaConfig(vocab_size=len(tokenizer), tie_word_embeddings=True, **shape, **wide, **ends)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return folder


TOWNS = ("Varn", "Isk", "Orrel", "Tamm")


def so_far(*rounds: list[Triple], question: str = "Where was she born?") -> SoFar:
    """A chain of sub-queries, each with its triples."""
    facts, number = list[Facts](), 0
    for at, triples in enumerate(rounds, start=1):
        lines = [format_fact(number + place, triple) for place, triple in enumerate(triples, start=1)]
        number += len(triples)
        facts.append(Facts(query=at, text="\n".join(lines)))
    queries = tuple(SubQuery(text=f"Sub-query {at}?") for at in range(1, len(rounds) + 1))
    return SoFar(question=question, queries=queries, sources=tuple(facts))


def of_town(town: str) -> tuple[Message, ...]:
    """The answerer's prompt with two rounds, the second of which has the place."""
    first, second = [("the film", "directed by", "Oda")], [("Oda", "born in", town), (town, "lies in", "Kestrow")]
    return render_messages(ANSWER_FROM_FACTS, so_far(first, second))


def examples(count: int) -> list[dict[str, Any]]:
    """Planning and answering, as roles.data.examples writes them."""
    return [_example(at) for at in range(count)]


def _example(at: int) -> dict[str, Any]:
    town = TOWNS[at % len(TOWNS)]
    if at % 3 == 0:
        sent, prompt, reply = of_town(town), ANSWER_FROM_FACTS.prompt, f'{{"facts":[2],"answer":"{town}","known":true}}'
    elif at % 3 == 1:
        given = so_far([("the film", "directed by", f"Oda of {town}")])
        sent, prompt, reply = (
            render_messages(NEXT, given),
            NEXT.prompt,
            '{"plan":"[SUBQ]","query":"Where was Oda born?"}',
        )
    else:
        sent, prompt, reply = (
            render_messages(BEGIN, QuestionInput(question=f"Who is from {town}?")),
            BEGIN.prompt,
            "[SUBQ]",
        )
    return {"question": str(at), "prompt": prompt, "messages": list(sent), "reply": reply}
