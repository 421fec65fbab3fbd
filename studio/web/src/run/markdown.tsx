import { useMemo } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { COMPONENTS } from "../documents/source-text";
import type { Answer, Citation } from "../types";

const MARK = "#footnote-";

/** The answer as Markdown text with a link for each footnote, after the sentences that it supports. */
export function withFootnotes({ text, citations }: Pick<Answer, "text" | "citations">): string {
  const characters = Array.from(text);
  const endsOf = (citation: Citation) => citation.sentence_ends ?? [characters.length];
  const ends = [...new Set([...citations.flatMap(endsOf), characters.length])].sort((a, b) => a - b);
  const marked = ends.map((end, part) => {
    const marks = citations.flatMap((each, at) =>
      endsOf(each).includes(end) ? [`[${at + 1}](${MARK}${at + 1})`] : [],
    );
    return characters.slice(part ? ends[part - 1] : 0, end).join("") + marks.join("");
  });
  return marked.join("");
}

interface Props {
  answer: Pick<Answer, "text" | "citations">;
  onOpen: (citation: Citation) => void;
}

/** The text of an answer; images are left out, because they may be anywhere. */
export function AnswerMarkdown({ answer, onOpen }: Props) {
  const components = useMemo<Components>(
    () => ({
      ...COMPONENTS,
      a: ({ href = "", children }) => {
        const number = href.startsWith(MARK) ? Number(href.slice(MARK.length)) : 0;
        const citation = answer.citations[number - 1];
        return citation ? (
          <Footnote number={number} citation={citation} onOpen={onOpen} />
        ) : (
          <a href={href} rel="noreferrer">
            {children}
          </a>
        );
      },
    }),
    [answer, onOpen],
  );
  return (
    <div className="answer-text">
      <Markdown remarkPlugins={PLUGINS} components={components} disallowedElements={LEFT_OUT}>
        {withFootnotes(answer)}
      </Markdown>
    </div>
  );
}

const PLUGINS = [remarkGfm];
const LEFT_OUT = ["img"];

interface FootnoteProps {
  number: number;
  citation: Citation;
  onOpen: (citation: Citation) => void;
}

export function Footnote({ number, citation, onOpen }: FootnoteProps) {
  return (
    <sup>
      <button
        className="footnote"
        aria-label={`Footnote ${number}: ${citation.title || citation.reference || "source"}`}
        onClick={() => onOpen(citation)}
      >
        {number}
      </button>
    </sup>
  );
}
