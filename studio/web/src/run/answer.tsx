import { useState, type ReactNode } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import { EXPLANATIONS, lookOf } from "../outcome";
import { Chip } from "../parts";
import type { Answer, Citation } from "../types";
import type { Linked } from "./linked";
import { AnswerMarkdown } from "./markdown";
import { asksForApproval } from "./request";
import { Sources } from "./sources";
import { Downloads, SurveyTable } from "./survey-table";

const REPORT = "report";
const REPORT_FORMATS = { md: "Markdown", html: "HTML", docx: "Word" };

interface Props {
  answer: Answer;
  label: string;
  /** Shown below the answer, next to its sources. */
  children?: ReactNode;
  /** The source that the address names. */
  linked?: Linked;
}

/** The answer with its footnotes, what follows it, and its sources. */
export function AnswerView({ answer, label, children, linked }: Props) {
  const [opened, setOpened] = useState<Citation | null>(linked?.citation ?? null);
  const beside = answer.citations.length > 0 && !answer.table;
  return (
    <div className={beside ? "with-sources" : "stack"}>
      <div className="stack">
        {linked?.notice && <p className="hint">{linked.notice}</p>}
        <section aria-label={label} className={`answer is-${lookOf(answer)}`}>
          {["weak", "unchecked"].includes(lookOf(answer)) && (
            <p>
              <Chip status={lookOf(answer)} />
            </p>
          )}
          <AnswerText answer={answer} onOpen={setOpened} />
          {answer.method === REPORT && !answer.asks && (
            <Downloads run={answer.thread} what="report" formats={REPORT_FORMATS} />
          )}
          {EXPLANATIONS[answer.status] && <p className="verdict">{EXPLANATIONS[answer.status]}</p>}
          <Support answer={answer} onOpen={setOpened} />
          <Warnings answer={answer} />
        </section>
      </div>
      {answer.table ? (
        <SurveyTable survey={answer.table} id={answer.thread} />
      ) : (
        <Sources citations={answer.citations} onOpen={setOpened} />
      )}
      {children && <div className="stack">{children}</div>}
      {opened && <DocumentDialog citation={opened} onClose={() => setOpened(null)} />}
    </div>
  );
}

/** The text of an answer; that of a survey is followed by its table, which is shown as such. */
function AnswerText({ answer, onOpen }: { answer: Answer; onOpen: (citation: Citation) => void }) {
  if (answer.table) return <p>{answer.text.split("\n\n")[0]}</p>;
  if (!answer.text || asksForApproval(answer)) return null;
  return <AnswerMarkdown answer={answer} onOpen={onOpen} />;
}

/** How well the sources support an answer, in words and on a click in figures, and what they say besides. */
function Support({ answer, onOpen }: { answer: Answer; onOpen: (citation: Citation) => void }) {
  const { support } = answer;
  const sentence = SENTENCES[lookOf(answer)] ?? "How well the sources support an answer";
  if (!support) return null;
  const { also } = support;
  return (
    <>
      {also && (
        <p className="also">
          The sources also say: <strong>{also.text}</strong>
          {also.citations.map((citation) => (
            <button key={citation.passage} type="button" className="link" onClick={() => onOpen(citation)}>
              {citation.title}
            </button>
          ))}
        </p>
      )}
      <details className="support">
        <summary>{sentence}</summary>
        The check gives it {Math.round(100 * support.score)} of 100.
      </details>
    </>
  );
}

const SENTENCES: Record<string, string> = {
  answered: "The sources support this answer",
  weak: "The sources support this answer only weakly",
};

const FEW = 3;

/** The warnings; why there is no answer is shown at once, unless the reasons are many. */
function Warnings({ answer: { warnings, status } }: { answer: Answer }) {
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
