import { useCallback } from "react";
import { Dialog } from "../dialog";
import { Busy, Problem } from "../parts";
import type { Citation, DocumentText } from "../types";
import { useLoaded } from "../use";
import { around, placeOf } from "./place";

type Cited = Pick<Citation, "document" | "title" | "quote" | "start" | "end" | "kind" | "reference">;

/** The document that a citation is from, opened at the quoted place. */
export function DocumentDialog({ citation, onClose }: { citation: Cited; onClose: () => void }) {
  return (
    <Dialog title={citation.title || citation.reference || "Source"} onClose={onClose} wide>
      {citation.document ? <Opened citation={citation} /> : <Elsewhere citation={citation} />}
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
        <p>The run has kept these words of it:</p>
        <blockquote>{citation.quote}</blockquote>
      </>
    );
  }
  if (!document) return <Busy>Opening the document</Busy>;
  const place = placeOf(document.text, citation);
  if (!place) {
    return (
      <>
        <p className="hint">The document has changed since: these words no longer stand in it.</p>
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
  expression: "Worked out, not read:",
  graph: "From the knowledge graph:",
  model: "What the model says by itself, from no document:",
};

function Elsewhere({ citation }: { citation: Cited }) {
  return (
    <div className="stack">
      <p>{KINDS[citation.kind ?? ""] ?? "From no document:"}</p>
      <blockquote>{citation.quote}</blockquote>
      {citation.reference && <pre>{citation.reference}</pre>}
    </div>
  );
}
