import { useMemo } from "react";
import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { COMPONENTS } from "../documents/source-text";
import type { Answer, Citation } from "../types";

/** The address of a footnote, which no document can contain. */
const MARK = `#footnote-${Math.random().toString(36).slice(2)}-`;

/** Foreign text without images, links, footnotes or HTML of its own, as `escape_markdown` of the server. */
export const escaped = (text: string): string =>
  text.replace(/(\\*)([[<])/g, (all, before: string, sign: string) => (before.length % 2 ? all : `${before}\\${sign}`));

/** A text, escaped, with a mark for each citation after the sentences that it supports. */
export function withMarks(text: string, citations: Citation[], markOf: (number: number) => string): string {
  const characters = Array.from(text);
  const endsOf = ({ sentence_ends = [characters.length] }: Citation) => sentence_ends;
  const ends = [...new Set([...citations.flatMap(endsOf), characters.length])].sort((a, b) => a - b);
  const marksAt = (end: number) =>
    citations.flatMap((each, at) => (endsOf(each).includes(end) ? [markOf(at + 1)] : []));
  return ends
    .map((end, at) => escaped(characters.slice(ends[at - 1] ?? 0, end).join("")) + marksAt(end).join(""))
    .join("");
}

/** The answer as Markdown text with a link for each footnote. */
export const withFootnotes = ({ text, citations }: Pick<Answer, "text" | "citations">): string =>
  withMarks(text, citations, (number) => `[${number}](${MARK}${number})`);

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
