import { Fragment, useState } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import { modelTime, seconds, words } from "../format";
import { hrefOf } from "../route";
import type { Answer, Citation, Cost } from "../types";

/** The answer with its footnotes, the findings that led to it, and its cost. */
export function AnswerView({ answer }: { answer: Answer }) {
  return (
    <>
      <AnswerText answer={answer} label="Answer" />
      <SubRuns answer={answer} />
      <Notes answer={answer} />
      <CostTable cost={answer.cost} took={answer.seconds} />
    </>
  );
}

/** The answer with its footnotes. */
export function AnswerText({ answer, label }: { answer: Answer; label: string }) {
  const [opened, setOpened] = useState<Citation | null>(null);
  return (
    <>
      <section aria-label={label} className={`answer is-${answer.status}`}>
        {answer.status !== "answered" && <p className="verdict">{words(answer.status)}</p>}
        <p className="answer-text">
          {markedParts(answer).map(({ text, cited }, part) => (
            <Fragment key={part}>
              {text}
              {cited.map((each) => (
                <Footnote key={each.number} {...each} onOpen={setOpened} />
              ))}
            </Fragment>
          ))}
        </p>
        <Sources citations={answer.citations} onOpen={setOpened} />
        {answer.support && (
          <p className="quiet">
            Evidence check: the passages support the answer to {Math.round(100 * answer.support.score)} % and answer the
            question to {Math.round(100 * answer.support.answerable)} %.
          </p>
        )}
        {answer.warnings.length > 0 && (
          <details className="warnings" open={answer.status !== "answered"}>
            <summary>Warnings ({answer.warnings.length})</summary>
            <ul>
              {answer.warnings.map((warning) => (
                <li key={warning}>{warning}</li>
              ))}
            </ul>
          </details>
        )}
      </section>
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

/** The parts of the text, each with the citations that are marked after it. */
function markedParts(answer: Answer) {
  const characters = Array.from(answer.text || "No answer.");
  const cited = answer.citations.map((citation, at) => ({ number: at + 1, citation }));
  const endsOf = (citation: Citation) => citation.sentence_ends ?? [characters.length];
  const ends = [...new Set([...answer.citations.flatMap(endsOf), characters.length])].sort((a, b) => a - b);
  return ends.map((end, part) => ({
    text: characters.slice(part ? ends[part - 1] : 0, end).join(""),
    cited: cited.filter(({ citation }) => endsOf(citation).includes(end)),
  }));
}

interface Cited {
  number: number;
  citation: Citation;
  onOpen: (citation: Citation) => void;
}

function Footnote({ number, citation, onOpen }: Cited) {
  return (
    <sup>
      <button
        className="footnote"
        aria-label={`Footnote ${number}: ${citation.title || citation.reference || "source"}`}
        onClick={() => {
          onOpen(citation);
        }}
      >
        {number}
      </button>
    </sup>
  );
}

function Sources({ citations, onOpen }: { citations: Citation[]; onOpen: (citation: Citation) => void }) {
  if (!citations.length) return null;
  return (
    <ol className="sources" aria-label="Footnotes">
      {citations.map((citation, at) => (
        <li key={at}>
          <q>{citation.quote}</q>
          <button
            className="link"
            onClick={() => {
              onOpen(citation);
            }}
          >
            {citation.title || citation.reference || "source"}
          </button>
          {citation.location && <span className="quiet">{citation.location}</span>}
          {citation.newer && <span className="quiet">an older version; the newest is {citation.newer}</span>}
          {citation.why && <span className="quiet">found by the name “{citation.why.name}”</span>}
        </li>
      ))}
    </ol>
  );
}

function Notes({ answer: { notes } }: { answer: Answer }) {
  if (!notes.length) return null;
  return (
    <details className="box" open>
      <summary>How this was found ({notes.length})</summary>
      <dl className="notes">
        {notes.map((note, at) => (
          <Fragment key={at}>
            {note.question !== notes[at - 1]?.question && <dt>{note.question}</dt>}
            <dd>
              {note.finding || "nothing"} {note.remark && <span className="quiet">({note.remark})</span>}
            </dd>
          </Fragment>
        ))}
      </dl>
    </details>
  );
}

function SubRuns({ answer: { hops } }: { answer: Answer }) {
  if (!hops?.length) return null;
  return (
    <section aria-label="Methods used">
      <h2>Methods used</h2>
      <ol className="hops">
        {hops.map((hop, at) => (
          <li key={at}>
            <a href={hrefOf("runs", hop.thread)}>{hop.method}</a>: {words(hop.status)}
            {hop.confidence !== null && `, P(correct) ${hop.confidence.toFixed(2)}`}{" "}
            <span className="quiet">({hop.doubt || hop.why})</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

export function CostTable({ cost, took }: { cost: Cost; took?: number | undefined }) {
  const rows = [...Object.entries(cost.nodes), ["total", cost] as const];
  return (
    <details className="box">
      <summary>Cost{took !== undefined && `: ${seconds(took)}`}</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">node</th>
            <th scope="col">calls</th>
            <th scope="col">prompt tokens</th>
            <th scope="col">reply tokens</th>
            <th scope="col">model time</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([node, part]) => (
            <tr key={node}>
              <th scope="row">{node}</th>
              <td>{part.calls}</td>
              <td>{part.prompt_tokens}</td>
              <td>{part.completion_tokens}</td>
              <td>{modelTime(part)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
