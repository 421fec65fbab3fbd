/** An answer as Markdown with its citations. */

import { EXPLANATIONS } from "../outcome";
import type { Answer } from "../types";
import { escaped, withMarks } from "./markdown";
import { titleOf } from "./sources";

/** The question, the answer with numbered footnotes, and the quote of each. */
export function markdownOf(answer: Answer): string {
  const text = withMarks(answer.text || (EXPLANATIONS[answer.status] ?? ""), answer.citations, (at) => `[^${at}]`);
  const notes = answer.citations.map((citation, at) => {
    const place = [titleOf(citation), citation.location].filter(Boolean).join(", ");
    return `[^${at + 1}]: ${escaped(`${place}: “${citation.quote}”`.replace(/\s+/g, " "))}`;
  });
  return `${[`# ${escaped(answer.question)}`, text, notes.join("\n")].filter(Boolean).join("\n\n")}\n`;
}
