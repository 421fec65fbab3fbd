import { useState, type ReactNode } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import { SourceText } from "../documents/source-text";
import { count } from "../format";
import type { Search, Texts } from "../texts";
import type { JsonObject, Passage } from "../types";
import { evidenceOf, pathText, placeText, searchesOf } from "./passages";

/** The passages that a step found, as they were at that time: by search with their scores, then all others. */
export function Evidence({ texts, changed }: { texts: Texts; changed: JsonObject }) {
  const searches = searchesOf(changed, texts);
  const ranked = new Set(searches.flatMap(({ hits }) => hits.map(({ passage }) => passage)));
  const others = evidenceOf(changed).filter((each) => !ranked.has(each) && texts.passages.has(each));
  const passages = ranked.size + others.length;
  if (!passages) return null;
  return (
    <details className="box" open>
      <summary>Evidence ({count(passages, "passage")})</summary>
      {searches.map((search, at) => (
        <Hits key={at} search={search} texts={texts} />
      ))}
      {others.length > 0 && (
        <ul className="evidence" aria-label="Other passages">
          {others.map((each) => (
            <PassageItem key={each} passage={texts.passages.get(each)} />
          ))}
        </ul>
      )}
    </details>
  );
}

function Hits({ search: { query, mode, hits }, texts }: { search: Search; texts: Texts }) {
  return (
    <section aria-label={`Search for ${query}`}>
      <h3>
        “{query}” <span className="quiet">{mode} search</span>
      </h3>
      <ol className="evidence">
        {hits.map(({ passage, score, parts, paths }, at) => (
          <PassageItem key={passage} passage={texts.passages.get(passage)}>
            <p className="quiet">{[placeText({ rank: at + 1, score }), ...partsOf(parts)].join(" · ")}</p>
            {paths.map((path, place) => (
              <p key={place} className="quiet">
                {pathText(path, texts)}
              </p>
            ))}
          </PassageItem>
        ))}
      </ol>
    </section>
  );
}

/** The parts of a score, such as "edges 0.12". */
function partsOf(parts: Record<string, number>): string[] {
  return Object.entries(parts).map(([name, value]) => `${name} ${value.toPrecision(3)}`);
}

/** A passage to read in place; its title opens the document there. */
export function PassageItem({ passage, children }: { passage: Passage | undefined; children?: ReactNode }) {
  const [isOpen, setOpen] = useState(false);
  if (!passage) return <li>{children}</li>;
  return (
    <li>
      <button className="link" onClick={() => setOpen(true)}>
        {passage.title}
      </button>{" "}
      {passage.location && <span className="quiet">{passage.location}</span>}
      {children}
      <SourceText document={passage.document} text={passage.text} />
      {isOpen && <DocumentDialog citation={{ ...passage, quote: passage.text }} onClose={() => setOpen(false)} />}
    </li>
  );
}
