"""One question from Python: print its steps, then its answer."""

import asyncio
import sys

import sleuth


async def main(question: str = "Who built the Pellowrig Light?") -> None:
    async for event in sleuth.stream(question, method="plain-rag"):
        if isinstance(event, sleuth.Step):
            print(f"{event.method}: {event.node} {event.state}", file=sys.stderr)
        else:
            print(event.text)
            for citation in event.citations:
                print(f"- {citation['title']}: {citation['quote']}")


asyncio.run(main(*sys.argv[1:2]))
