import { isObject, textOf } from "../json";
import type { JsonObject } from "../types";

/** The messages of a chat before its latest answer. */
export function ChatHistory({ state }: { state: JsonObject }) {
  const messages = Array.isArray(state.messages) ? state.messages.filter(isObject) : [];
  const last = messages.findLastIndex((message) => message.type === "human");
  if (last < 0) return null;
  const question = textOf(state.question);
  return (
    <ol className="chat-history" aria-label="Earlier messages">
      {messages.slice(0, last + 1).map((message, at) => (
        <li key={textOf(message.id) || at} className={message.type === "human" ? "mine" : "theirs"}>
          <span className="unseen">{message.type === "human" ? "You: " : "Answer: "}</span>
          {textOf(message.content)}
          {at === last && question !== "" && question !== textOf(message.content).trim() && (
            <p className="quiet">Rewritten as: {question}</p>
          )}
        </li>
      ))}
    </ol>
  );
}
