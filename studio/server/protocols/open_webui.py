"""Replies to what Open WebUI asks for itself in a chat: a title, tags and follow-up questions. None of them is a run."""

import json
import re

_OUTPUT = re.compile(r'^### Output:\nJSON format: \{ "(title|tags|follow_ups)": ', re.MULTILINE)
"""The line of its default prompts that names the wanted JSON; the metadata with the name of the task stays in Open WebUI."""

_TITLE_WORDS, _TITLE_CHARS = 8, 80


def reply_to_task(message: str) -> str:
    """Return the JSON that a default prompt of Open WebUI asks for; empty for any other message.

    The title is the beginning of the question; there are no tags and no follow-up questions.
    """
    prompt, _, history = message.partition("\n### Chat History:\n<chat_history>\n")
    task = _OUTPUT.search(prompt) if prompt.startswith("### Task:\n") else None
    if task is None or not history.endswith("\n</chat_history>"):
        return ""
    question = history.partition("USER: ")[2].partition("\n")[0]
    title = " ".join(question.split()[:_TITLE_WORDS])[:_TITLE_CHARS]
    return json.dumps({task[1]: title if task[1] == "title" else []}, ensure_ascii=False)
