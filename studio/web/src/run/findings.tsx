/** How an answer was found: its findings with their sources, the methods that were used, and the steps. */

import { useState, type ReactNode } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import type { Live } from "../events";
import { statusInWords } from "../outcome";
import { isObject } from "../json";
import { hrefOf } from "../route";
import { useServer } from "../server";
import type { Answer, Citation, JsonObject, Note, Passage } from "../types";
import { Footnote } from "./markdown";
import { titleOf } from "./sources";
import { StepList } from "./steps";

interface Props {
  answer: Answer;
  live: Live;
  id: string;
  state: JsonObject;
}

export function Findings({ answer, live, id, state }: Props) {
  const { hops } = answer;
  const notes = withQuotes(answer.notes, state);
  if (!notes.length && !live.steps.length && !hops?.length) return null;
  return (
    <>
      <Notes notes={notes} citations={answer.citations} />
      <SubRuns answer={answer} />
      {live.steps.length > 0 && (
        <section aria-labelledby="steps">
          <h2 id="steps">Steps</h2>
          <StepList steps={live.steps} id={id} />
        </section>
      )}
    </>
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
      {opened && <DocumentDialog citation={opened} onClose={() => setOpened(null)} />}
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

/** The sources of a finding at its own quotes: footnotes of the answer, and the titles of others. */
function NoteSources({ note, citations, onOpen }: NoteSourcesProps): ReactNode {
  const own = note.citations ?? [];
  const others = note.passages.filter((passage) => !own.some((each) => each.passage === passage));
  return (
    <>
      {own.map((citation, at) => {
        const number = 1 + citations.findIndex((each) => isSame(each, citation));
        if (number) return <Footnote key={at} number={number} citation={citation} onOpen={onOpen} />;
        return <SourceLink key={at} citation={citation} onOpen={onOpen} />;
      })}
      {others.map((passage) => (
        <Other key={passage} id={passage} onOpen={onOpen} />
      ))}
    </>
  );
}

function isSame(a: Citation, b: Citation): boolean {
  return a.passage === b.passage && a.quote === b.quote;
}

/** The notes of an answer with their quotes, which the state of the run has. */
export function withQuotes(notes: Note[], state: JsonObject): Note[] {
  const stored = isObject(state.notes) ? (Object.values(state.notes) as unknown as Note[]) : [];
  return notes.map((note) => {
    const whole = stored.find(({ question, finding }) => question === note.question && finding === note.finding);
    return { ...note, citations: note.citations ?? whole?.citations ?? [] };
  });
}

interface LinkProps {
  citation: Citation;
  onOpen: (citation: Citation) => void;
}

function SourceLink({ citation, onOpen }: LinkProps) {
  return (
    <>
      {" "}
      <button className="link" onClick={() => onOpen(citation)}>
        {titleOf(citation)}
      </button>
    </>
  );
}

function Other({ id, onOpen }: { id: string; onOpen: (citation: Citation) => void }) {
  const { value: passage } = useServer<Passage>(`passages/${encodeURIComponent(id)}`);
  return passage && <SourceLink citation={{ ...passage, passage: id, quote: passage.text }} onOpen={onOpen} />;
}

function SubRuns({ answer: { hops } }: { answer: Answer }) {
  if (!hops?.length) return null;
  return (
    <section aria-label="Methods used">
      <h2>Methods used</h2>
      <ol className="hops">
        {hops.map((subrun, at) => (
          <li key={at}>
            <a href={hrefOf("runs", subrun.thread)}>{subrun.method}</a>: {statusInWords(subrun.status)}
            {subrun.confidence !== null && `, probably correct to ${Math.round(100 * subrun.confidence)} %`}{" "}
            <span className="quiet">({subrun.doubt || subrun.why})</span>
          </li>
        ))}
      </ol>
    </section>
  );
}
