/** Small components of several views. */

import type { ReactNode } from "react";
import { statusInWords } from "./outcome";

/** An error; of a long message the first sentence, and the rest on a click. */
export function Problem({ children }: { children: ReactNode }) {
  if (!children) return null;
  const [first, rest] = typeof children === "string" ? split(children) : [children, ""];
  return (
    <div className="problem" role="alert">
      {first}
      {rest && (
        <details>
          <summary>More</summary>
          {rest}
        </details>
      )}
    </div>
  );
}

const LONG = 160;

/** A message as its first sentence and the rest, unless the whole is short. */
export function split(message: string): [string, string] {
  if (message.length <= LONG) return [message, ""];
  const sentence = /^.{10,160}?[.!?;](?=\s)/s.exec(message)?.[0] ?? message.slice(0, LONG).replace(/\s+\S*$/, "");
  const isWhole = /[.!?;]$/.test(sentence);
  return [isWhole ? sentence : `${sentence}…`, message.slice(sentence.length).trim()];
}

/** A status as a word with a dot of its color. */
export function Chip({ status }: { status: string }) {
  return (
    <span className={`chip is-${status}`}>
      <span className={`dot is-${status}`} aria-hidden="true" />
      {statusInWords(status)}
    </span>
  );
}

export function Busy({ children }: { children: ReactNode }) {
  return (
    <p className="busy" role="status">
      <span className="spinner" aria-hidden="true" /> {children}
    </p>
  );
}
