import { isObject, textOf } from "../json";
import type { JsonObject } from "../types";

/** What was said in a chat before its latest answer. */
export function Talk({ state }: { state: JsonObject }) {
  const messages = Array.isArray(state.messages) ? state.messages.filter(isObject) : [];
  const last = messages.findLastIndex((message) => message.type === "human");
  if (last < 0) return null;
  return (
    <ol className="talk" aria-label="What was said">
      {messages.slice(0, last + 1).map((message, at) => (
        <li key={textOf(message.id) || at} className={message.type === "human" ? "mine" : "theirs"}>
          <span className="unseen">{message.type === "human" ? "You: " : "Answer: "}</span>
          {textOf(message.content)}
        </li>
      ))}
    </ol>
  );
}
