/** How an answer was found: its findings with their sources, the methods that were used, and the steps. */

import { useState, type ReactNode } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import type { Live } from "../events";
import { words } from "../format";
import { hrefOf } from "../route";
import { useServer } from "../server";
import type { Answer, Citation, Note, Passage } from "../types";
import { Footnote } from "./markdown";
import { StepList } from "./steps";

interface Props {
  answer: Answer;
  live: Live;
  id: string;
}

export function Findings({ answer, live, id }: Props) {
  const { notes, hops } = answer;
  if (!notes.length && !live.steps.length && !hops?.length) return null;
  return (
    <details className="box findings">
      <summary>How this was found</summary>
      <Notes notes={notes} citations={answer.citations} />
      <SubRuns answer={answer} />
      {live.steps.length > 0 && (
        <section aria-labelledby="steps">
          <h3 id="steps">Steps</h3>
          <StepList live={live} id={id} />
        </section>
      )}
    </details>
  );
}

interface NotesProps {
  notes: Note[];
  citations: Citation[];
}

function Notes({ notes, citations }: NotesProps) {
  const [opened, setOpened] = useState<Citation | null>(null);
  if (!notes.length) return null;
  return (
    <>
      <ol className="notes" aria-label="Findings">
        {grouped(notes).map(({ question, found }) => (
          <li key={question}>
            Looked for “{question}” – found{" "}
            {found.map((note, at) => (
              <span key={at}>
                {at > 0 && "; "}
                <strong>{note.finding || "nothing"}</strong>
                {note.remark && <span className="quiet"> ({note.remark})</span>}
                <NoteSources note={note} citations={citations} onOpen={setOpened} />
              </span>
            ))}
          </li>
        ))}
      </ol>
      {opened && (
        <DocumentDialog
          citation={opened}
          onClose={() => {
            setOpened(null);
          }}
        />
      )}
    </>
  );
}

/** The notes by question, in their order. */
export function grouped(notes: Note[]): { question: string; found: Note[] }[] {
  const questions = [...new Set(notes.map((note) => note.question))];
  return questions.map((question) => ({ question, found: notes.filter((note) => note.question === question) }));
}

interface NoteSourcesProps {
  note: Note;
  citations: Citation[];
  onOpen: (citation: Citation) => void;
}

/** The sources of a finding: footnotes of the answer, and the titles of other passages. */
function NoteSources({ note, citations, onOpen }: NoteSourcesProps): ReactNode {
  const cited = citations.flatMap((citation, at) =>
    note.passages.includes(citation.passage) ? [{ citation, number: at + 1 }] : [],
  );
  const others = note.passages.filter((passage) => !cited.some(({ citation }) => citation.passage === passage));
  return (
    <>
      {cited.map(({ citation, number }) => (
        <Footnote key={number} number={number} citation={citation} onOpen={onOpen} />
      ))}
      {others.map((passage) => (
        <Other key={passage} id={passage} onOpen={onOpen} />
      ))}
    </>
  );
}

function Other({ id, onOpen }: { id: string; onOpen: (citation: Citation) => void }) {
  const { value: passage } = useServer<Passage>(`passages/${encodeURIComponent(id)}`);
  if (!passage) return null;
  return (
    <>
      {" "}
      <button
        className="link"
        onClick={() => {
          onOpen({ ...passage, passage: id, quote: passage.text });
        }}
      >
        {passage.title}
      </button>
    </>
  );
}

function SubRuns({ answer: { hops } }: { answer: Answer }) {
  if (!hops?.length) return null;
  return (
    <section aria-label="Methods used">
      <h3>Methods used</h3>
      <ol className="hops">
        {hops.map((hop, at) => (
          <li key={at}>
            <a href={hrefOf("runs", hop.thread)}>{hop.method}</a>: {words(hop.status)}
            {hop.confidence !== null && `, probably correct to ${Math.round(100 * hop.confidence)} %`}{" "}
            <span className="quiet">({hop.doubt || hop.why})</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
