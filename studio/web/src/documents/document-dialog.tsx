import { useCallback } from "react";
import { Dialog } from "../dialog";
import { Busy, Problem } from "../parts";
import type { Citation, DocumentText } from "../types";
import { useLoaded } from "../use";
import { around, placeOf } from "./place";

type Cited = Pick<Citation, "document" | "title" | "quote" | "start" | "end" | "kind" | "reference">;

/** Dialog with the cited document, scrolled to the quote. */
export function DocumentDialog({ citation, onClose }: { citation: Cited; onClose: () => void }) {
  return (
    <Dialog title={citation.title || citation.reference || "Source"} onClose={onClose} wide>
      {citation.document ? <Opened citation={citation} /> : <NoDocument citation={citation} />}
    </Dialog>
  );
}

function Opened({ citation }: { citation: Cited }) {
  const { value: document, problem } = useLoaded<DocumentText>(`documents/${encodeURIComponent(citation.document)}`);
  const show = useCallback((mark: HTMLElement | null) => {
    mark?.scrollIntoView({ block: "center" });
  }, []);
  if (problem) {
    return (
      <>
        <Problem>{problem}</Problem>
        <p>The quote that is stored with the run:</p>
        <blockquote>{citation.quote}</blockquote>
      </>
    );
  }
  if (!document) return <Busy>Opening the document</Busy>;
  const place = placeOf(document.text, citation);
  if (!place) {
    return (
      <>
        <p className="hint">The document has changed and no longer contains this quote.</p>
        <blockquote>{citation.quote}</blockquote>
        <div className="text">{document.text}</div>
      </>
    );
  }
  const { before, quoted, after } = around(document.text, place);
  return (
    <div className="text" role="region" aria-label="Text of the document" tabIndex={0}>
      {before}
      <mark ref={show}>{quoted}</mark>
      {after}
    </div>
  );
}

const KINDS: Record<string, string> = {
  expression: "Calculated:",
  graph: "From the knowledge graph:",
  model: "From the model, not from a document:",
};

function NoDocument({ citation }: { citation: Cited }) {
  return (
    <div className="stack">
      <p>{KINDS[citation.kind ?? ""] ?? "Not from a document:"}</p>
      <blockquote>{citation.quote}</blockquote>
      {citation.reference && <pre>{citation.reference}</pre>}
    </div>
  );
}
