/** The sources of an answer as cards: the title, the place, and the quote in its context; one is read in their place. */

import { useEffect, useRef } from "react";
import { CitedDocument, DocumentDialog } from "../documents/document-dialog";
import { placeOf } from "../documents/place";
import { excerptOf } from "../documents/excerpt";
import { SourceText } from "../documents/source-text";
import { words } from "../format";
import { useServer } from "../server";
import type { Citation, Passage } from "../types";
import { useWide } from "../wide";

interface Props {
  citations: Citation[];
  /** The source that is read. */
  opened: Citation | null;
  onOpen: (citation: Citation | null) => void;
}

/** The sources; the document of an opened one takes their place, or on a narrow screen that of the page. */
export function Sources({ citations, opened, onOpen }: Props) {
  const isWide = useWide();
  const close = () => onOpen(null);
  return (
    <aside className={citations.length ? "sources" : "sources none"} aria-label="Sources">
      {opened && isWide ? (
        <Reading key={`${opened.passage} ${opened.start}`} citation={opened} onClose={close} />
      ) : (
        <>
          <h2>Sources</h2>
          {!citations.length && <p className="quiet">What an answer cites is shown here.</p>}
          <ol>
            {citations.map((citation, at) => (
              <li key={at}>
                <Card number={at + 1} citation={citation} onOpen={onOpen} />
              </li>
            ))}
          </ol>
        </>
      )}
      {opened && !isWide && <DocumentDialog citation={opened} onClose={close} />}
    </aside>
  );
}

/** A document in the place of the sources; Escape returns to them and to what opened it. */
function Reading({ citation, onClose }: { citation: Citation; onClose: () => void }) {
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    back.current?.focus({ preventScroll: true });
    const close = (event: KeyboardEvent) => {
      if (event.key === "Escape") onClose();
    };
    addEventListener("keydown", close);
    return () => {
      removeEventListener("keydown", close);
      if (opener instanceof HTMLElement) opener.focus({ preventScroll: true });
    };
    // Only when it is opened and closed.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return (
    <section className="stack reading" aria-label="Source">
      <header className="row spread">
        <h2>{titleOf(citation)}</h2>
        <button ref={back} className="plain" onClick={onClose}>
          All sources
        </button>
      </header>
      <CitedDocument citation={citation} />
    </section>
  );
}

interface CardProps {
  number: number;
  citation: Citation;
  onOpen: (citation: Citation) => void;
}

function Card({ number, citation, onOpen }: CardProps) {
  const { changed, location, newer, why } = citation;
  return (
    <article className="card" aria-label={`Source ${number}`}>
      <p className="row">
        <span className="number" aria-hidden="true">
          {number}
        </span>
        <button className="link title" onClick={() => onOpen(citation)}>
          {titleOf(citation)}
        </button>
        {location && <span className="quiet">{location}</span>}
      </p>
      <Quote citation={citation} />
      {newer && <p className="quiet">From an older version; the newest is {newer}.</p>}
      {changed && <p className="quiet">The document has changed since this answer. Ask again.</p>}
      {why && <p className="quiet">Found by the name “{why.name}”.</p>}
    </article>
  );
}

const KINDS: Record<string, string> = {
  expression: "Calculation",
  graph: "Knowledge graph",
  model: "The model’s own knowledge",
  note: "Earlier finding",
};

export function titleOf({ title, reference, kind = "" }: Citation): string {
  return title || KINDS[kind] || reference || words(kind) || "Source";
}

/** The quote between the words around it in its paragraph; alone if its passage has been deleted. */
function Quote({ citation }: { citation: Citation }) {
  const { document, quote } = citation;
  const path = document && citation.passage ? `passages/${encodeURIComponent(citation.passage)}` : "";
  const { value: passage, status } = useServer<Passage>(path);
  const place = passage && placeIn(passage, citation);
  const excerpt = place ? excerptOf(passage.text, place) : { text: quote, place: { start: 0, end: quote.length } };
  return (
    <div className="context">
      <SourceText document={document || "quote.txt"} {...excerpt} />
      {status === MISSING && <p>The document is no longer in the collection.</p>}
    </div>
  );
}

const MISSING = 404;

function placeIn(passage: Passage, { start, end, quote }: Citation) {
  return placeOf(passage.text, { start: start - passage.start, end: end - passage.start, quote });
}
