/** The sources of an answer as cards: the title, the place, and the quote in its context. */

import { placeOf } from "../documents/place";
import { excerptOf } from "../documents/excerpt";
import { SourceText } from "../documents/source-text";
import { words } from "../format";
import { useServer } from "../server";
import type { Citation, Passage } from "../types";

interface Props {
  citations: Citation[];
  onOpen: (citation: Citation) => void;
}

export function Sources({ citations, onOpen }: Props) {
  if (!citations.length) return null;
  return (
    <section className="sources" aria-label="Sources">
      <h2>Sources</h2>
      <ol>
        {citations.map((citation, at) => (
          <li key={at}>
            <Card number={at + 1} citation={citation} onOpen={onOpen} />
          </li>
        ))}
      </ol>
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
