import { lazy, Suspense, useCallback, useState } from "react";
import { Dialog } from "../dialog";
import { loaded } from "../loaded";
import { Busy, Problem } from "../parts";
import type { Citation, DocumentText } from "../types";
import { useServer } from "../server";
import { around, placeOf } from "./place";
import { SourceText } from "./source-text";

const MISSING = 404;
const PdfOriginal = lazy(() => loaded(() => import("./pdf-original")));

type Cited = Pick<Citation, "document" | "title" | "quote" | "start" | "end" | "kind" | "reference" | "location">;

/** Dialog with the cited document, scrolled to the quote. */
export function DocumentDialog({ citation, onClose }: { citation: Cited; onClose: () => void }) {
  return (
    <Dialog title={citation.title || citation.reference || "Source"} onClose={onClose} wide>
      <CitedDocument citation={citation} />
    </Dialog>
  );
}

/** The cited document, scrolled to the quote. */
export function CitedDocument({ citation }: { citation: Cited }) {
  return citation.document ? <Opened citation={citation} /> : <NoDocument citation={citation} />;
}

function Opened({ citation }: { citation: Cited }) {
  const path = `documents/${encodeURIComponent(citation.document)}`;
  const { value: document, problem, status } = useServer<DocumentText>(path);
  if (problem) {
    return (
      <div className="stack">
        <Problem>{status === MISSING ? "This document is no longer in the collection." : problem}</Problem>
        {citation.quote && (
          <>
            <p>The quote that is stored with the run:</p>
            <blockquote>{citation.quote}</blockquote>
          </>
        )}
      </div>
    );
  }
  if (!document) return <Busy>Opening the document</Busy>;
  const hasPages = document.has_original && document.media_type === "application/pdf";
  return hasPages ? <Both document={document} citation={citation} /> : <Text document={document} citation={citation} />;
}

/** The original of a PDF document, and its text, which is also shown if the original cannot be. */
function Both({ document, citation }: { document: DocumentText; citation: Cited }) {
  const [view, setView] = useState<"Original" | "Text">("Original");
  const [problem, setProblem] = useState("");
  const showText = useCallback((why: string) => {
    setProblem(why);
    setView("Text");
  }, []);
  return (
    <div className="stack">
      <div className="tabs" role="group" aria-label="Show">
        {(["Original", "Text"] as const).map((name) => (
          <button key={name} type="button" aria-pressed={view === name} onClick={setView.bind(null, name)}>
            {name}
          </button>
        ))}
      </div>
      {view === "Text" ? (
        <>
          <Problem>{problem && `The original cannot be shown: ${problem}`}</Problem>
          <Text document={document} citation={citation} />
        </>
      ) : (
        <Suspense fallback={<Busy>Opening the original</Busy>}>
          <PdfOriginal
            document={document.id}
            location={citation.location ?? ""}
            quote={citation.quote}
            onProblem={showText}
          />
        </Suspense>
      )}
    </div>
  );
}

/** The text of a document, scrolled to the quote. */
function Text({ document: { id, text }, citation }: { document: DocumentText; citation: Cited }) {
  const show = useCallback(
    (box: HTMLElement | null) => box?.querySelector("mark")?.scrollIntoView({ block: "center" }),
    [],
  );
  const place = placeOf(text, citation);
  const { before, quoted, after } = around(text, place ?? { start: 0, end: 0 });
  return (
    <>
      {!place && (
        <>
          <p className="hint">The document has changed and no longer contains this quote.</p>
          <blockquote>{citation.quote}</blockquote>
        </>
      )}
      <div ref={show} className="text" role="region" aria-label="Text of the document" tabIndex={0}>
        <SourceText
          document={id}
          text={before + quoted + after}
          place={{ start: before.length, end: before.length + quoted.length }}
        />
      </div>
    </>
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
