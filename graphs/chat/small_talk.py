"""Messages that need neither a search nor a model: greetings, thanks and the like, and slash commands."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final
from unicodedata import category

from langchain_core.messages import AnyMessage

from sleuth.graphs.core.answer import Verdict
from sleuth.graphs.registry import METHODS, method

REPLIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hello": "Hello! What would you like to know?",
        "thanks": "You are welcome! Ask me anything else about your documents.",
        "goodbye": "Goodbye!",
        "agreement": "Good. What else would you like to know?",
        "introduction": (
            "I am sleuth: I answer questions about your documents and cite the passages. Ask me something about them."
        ),
    }
)
"""The replies without a search. A model chooses among the kinds of `SmallTalk`."""

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "help": "show these commands",
        "method": "with a name: answer the next questions with this method; without one: list the methods",
        "sources": "show the sources of the last answer again",
    }
)
"""The slash commands of every chat, with their descriptions."""

_PHRASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "introduction": r"(?:who|what) are you|what(?: else)? can (?:you|i) do|what do you do|how do you work|"
        r"(?:how )?can you help|what can i ask|what is sleuth|who is sleuth|^help(?: me)?$",
        "goodbye": r"(?:good ?)?bye(?: bye)?|see (?:you|ya)|good night|farewell|tsch[uü]ss|auf wiedersehen|au revoir",
        "thanks": r"thanks|thank (?:you|u)|thx|ty|cheers|much appreciated|danke(?: sch[oö]n)?|vielen dank|merci",
        "hello": r"hello|hi|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day)|how are you|"
        r"how is it going|nice to meet you|hallo|moin|servus|guten (?:morgen|tag|abend)|bonjour|salut",
        "agreement": r"ok|okay|k|alright|all right|fine|good|great|nice|cool|perfect|super|excellent|wonderful|awesome|"
        r"got it|i see|understood|sure|yes|well done|good job|that (?:was|is) (?:very |really |so )?"
        r"(?:helpful|useful|great|good|nice|perfect|kind(?: of you)?)|that helps",
    }
)
"""What each kind consists of, in English, German and French; a message of several kinds is of the first."""

_FILLERS = (
    r"there|so|very|a lot|much|again|all|everyone|everybody|sleuth|dear|my friend|please|me|today|then|now|and|for|to|"
    r"for (?:the|your|that|this|all) ?(?:help|answer|info|information)?|you too|have a (?:nice|good|great) (?:day|one)"
)
_MAX_CHARS = 100
"""Characters of a message that is nothing but small talk at most."""
_PARTS = {kind: re.compile(rf"\b(?:{phrases})\b") for kind, phrases in _PHRASES.items()}
_WHOLE = re.compile(rf"(?:(?:{'|'.join(_PHRASES.values())}|{_FILLERS})(?: |$))+")


def small_talk_reply(message: str) -> str:
    """Return the reply to a message of nothing but small talk; empty for any other message."""
    words = " ".join(re.findall(r"\w+", message.casefold().replace("'s", " is").replace("’s", " is")))
    if not words:
        return REPLIES["agreement"] if any(category(each) == "So" for each in message) else ""  # smileys
    if len(words) > _MAX_CHARS or not _WHOLE.fullmatch(words):
        return ""
    return next((REPLIES[kind] for kind, part in _PARTS.items() if part.search(words)), "")


def is_command(message: str) -> bool:
    """Return whether a message is a slash command, such as `/help`; paths are none."""
    return bool(re.fullmatch(r"/[a-zA-Z]+(\s.*)?", message.strip()))


def is_answered_by_rule(message: str) -> bool:
    """Return whether a message needs neither a search nor a model."""
    return is_command(message) or bool(small_talk_reply(message))


def _parse_command(message: str) -> tuple[str, str]:
    command, argument = [*message.strip()[1:].split(maxsplit=1), ""][:2]
    return command.casefold(), argument.strip()


def settings_of_command(message: str) -> dict[str, Any]:
    """Return the settings of the chat that a message changes: `/method NAME` chooses another method.

    Raises:
        UnknownName: there is no such method.
    """
    command, name = _parse_command(message) if is_command(message) else ("", "")
    if command != "method" or not name:
        return {}
    return {"method": method(name).name, "method_settings": {}}


def describe_commands(commands: Mapping[str, str] = COMMANDS) -> str:
    """Return a line for each command."""
    return "\n".join(f"/{name:<8} {meaning}" for name, meaning in commands.items())


def reply_by_rule(message: str, method: str, earlier: Iterable[AnyMessage]) -> Verdict | None:
    """Return the reply to a command or to small talk; None for any other message. Takes what `run_command` takes."""
    if is_command(message):
        return run_command(message, method, earlier)
    text = small_talk_reply(message)
    return Verdict(status="answered", text=text, citations=[]) if text else None


def run_command(message: str, method: str, earlier: Iterable[AnyMessage]) -> Verdict:
    """Return the reply to a slash command; that of an unknown one lists all.

    Args:
        message: the command.
        method: the method that answers the questions of the chat.
        earlier: the messages of the chat.
    """
    command, name = _parse_command(message)
    citations: list[Any] = []
    match command:
        case "help":
            text = describe_commands()
        case "method" if name:
            text = f"The next questions are answered by {method}."
        case "method":
            text = f"Questions are answered by {method}. Methods: {', '.join(METHODS)}."
        case "sources":
            cited = [each.additional_kwargs["citations"] for each in earlier if each.additional_kwargs.get("citations")]
            citations = cited[-1] if cited else []
            text = "The sources of the last answer:" if citations else "No sources yet."
        case _:
            text = f"There is no command /{command}. The commands:\n{describe_commands()}"
    return Verdict(status="answered", text=text, citations=citations)
