import { useCallback } from "react";
import { EXPLANATIONS, lookOf, supportOf } from "../outcome";
import { count, seconds } from "../format";
import { Chip } from "../parts";
import type { Answer, Citation } from "../types";
import { AnswerMarkdown } from "./markdown";
import { asksForApproval } from "./request";
import { SurveyTable, Downloads } from "./survey-table";
import { CHAT } from "./turns";

const REPORT = "report";
const REPORT_FORMATS = { md: "Markdown", html: "HTML", docx: "Word" };

interface Props {
  answer: Answer;
  /** What the answer is called; each on the page in its own way. */
  label?: string;
  /** Open a source; the same function as long as the answer is the same, so that its footnotes keep the focus. */
  onOpen: Open;
}

export type Open = (answer: Answer, citation: Citation | null) => void;

/** An answer with its footnotes, and its status in one line. */
export function AnswerView({ answer, label = "Answer", onOpen }: Props) {
  const look = lookOf(answer);
  const also = answer.support?.also;
  const open = useCallback((citation: Citation) => onOpen(answer, citation), [answer, onOpen]);
  return (
    <section aria-label={label} className={`answer is-${look}`}>
      <AnswerText answer={answer} onOpen={open} />
      {answer.method === REPORT && !answer.asks && (
        <Downloads run={answer.thread} what="report" formats={REPORT_FORMATS} />
      )}
      {EXPLANATIONS[answer.status] && <p>{EXPLANATIONS[answer.status]}</p>}
      {also && (
        <p>
          The sources also say: <strong>{also.text}</strong>
          {also.citations.map((citation) => (
            <button key={citation.passage} type="button" className="link also" onClick={() => open(citation)}>
              {citation.title}
            </button>
          ))}
        </p>
      )}
      {isFound(answer) && (
        <p className="status">
          <Chip status={look} /> <span>{supportOf(answer)}</span>
          {answer.notes.length > 1 && <span>{count(answer.notes.length, "step")}</span>}
          {typeof answer.seconds === "number" && <span className="took">{seconds(answer.seconds)}</span>}
        </p>
      )}
      {answer.table && <SurveyTable survey={answer.table} id={answer.thread} />}
      {answer.status !== "answered" && <Warnings answer={answer} />}
    </section>
  );
}

/** True unless it is a reply of a chat without a search. */
export function isFound({ method, status, hops, asks }: Answer): boolean {
  return method !== CHAT || hops !== undefined || status !== "answered" || asks !== undefined;
}

/** The text of an answer; that of a survey is followed by its table, which is shown as such. */
function AnswerText({ answer, onOpen }: { answer: Answer; onOpen: (citation: Citation) => void }) {
  if (answer.table) return <p className="answer-text">{answer.text.split("\n\n")[0]}</p>;
  if (!answer.text || asksForApproval(answer)) return null;
  return <AnswerMarkdown answer={answer} onOpen={onOpen} />;
}

const FEW = 3;

/** The warnings; why there is no answer is shown at once, unless the reasons are many. */
export function Warnings({ answer: { warnings, status } }: { answer: Answer }) {
  if (!warnings.length) return null;
  return (
    <details className="warnings" open={status !== "answered" && warnings.length <= FEW}>
      <summary>Warnings ({warnings.length})</summary>
      <ul>
        {[...new Set(warnings)].map((warning) => (
          <li key={warning}>{warning}</li>
        ))}
      </ul>
    </details>
  );
}
