import Markdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { isMarkdown, marked, markQuote, withHeader } from "./excerpt";
import type { Span } from "./place";

interface Props {
  /** The id of the document. */
  document: string;
  text: string;
  /** The quote in the text. */
  place?: Span | null;
}

/** The text of a source with its quote marked: Markdown without images and links, other texts as they are. */
export function SourceText({ document, text, place }: Props) {
  const { start, end } = place ?? { start: 0, end: 0 };
  if (!isMarkdown(document)) {
    return (
      <div className="source-text plain-text">
        {text.slice(0, start)}
        {end > start && <mark>{text.slice(start, end)}</mark>}
        {text.slice(end)}
      </div>
    );
  }
  return (
    <div className="source-text">
      <Markdown
        remarkPlugins={REMARK}
        rehypePlugins={REHYPE}
        components={COMPONENTS}
        disallowedElements={LEFT_OUT}
        unwrapDisallowed
      >
        {withHeader(marked(text, { start, end }))}
      </Markdown>
    </div>
  );
}

const REMARK = [remarkGfm];
const REHYPE = [markQuote];
const LEFT_OUT = ["img", "a"];

export const COMPONENTS: Components = {
  table: ({ children }) => (
    <div className="scroll" role="region" aria-label="Table" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};
