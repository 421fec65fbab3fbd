import { useState, type ReactNode } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import { words } from "../format";
import { EXPLANATIONS } from "../outcome";
import type { Answer, Citation } from "../types";
import type { Linked } from "./linked";
import { AnswerMarkdown } from "./markdown";
import { asksForApproval } from "./request";
import { Sources } from "./sources";

interface Props {
  answer: Answer;
  label: string;
  /** Shown below the answer, next to its sources. */
  children?: ReactNode;
  /** The sources are folded below the answer. */
  folded?: boolean;
  /** The source that the address names. */
  linked?: Linked;
}

/** The answer with its footnotes, what follows it, and its sources. */
export function AnswerView({ answer, label, children, folded = false, linked }: Props) {
  const [opened, setOpened] = useState<Citation | null>(linked?.citation ?? null);
  const sources = <Sources citations={answer.citations} onOpen={setOpened} />;
  return (
    <div className={answer.citations.length && !folded ? "with-sources" : "stack"}>
      <div className="stack">
        {linked?.notice && <p className="hint">{linked.notice}</p>}
        <section aria-label={label} className={`answer is-${answer.status}`}>
          <Verdict answer={answer} />
          {answer.text && !asksForApproval(answer) && <AnswerMarkdown answer={answer} onOpen={setOpened} />}
          <Support answer={answer} />
          <Warnings answer={answer} />
        </section>
        {children}
      </div>
      {folded && answer.citations.length ? (
        <details className="box">
          <summary>Sources ({answer.citations.length})</summary>
          {sources}
        </details>
      ) : (
        sources
      )}
      {opened && (
        <DocumentDialog
          citation={opened}
          onClose={() => {
            setOpened(null);
          }}
        />
      )}
    </div>
  );
}

function Verdict({ answer: { status } }: { answer: Answer }) {
  const explanation = EXPLANATIONS[status];
  if (!explanation) return null;
  return (
    <p className="verdict">
      <strong>{words(status)}</strong> – {explanation}
    </p>
  );
}

function Support({ answer: { support } }: { answer: Answer }) {
  if (!support) return null;
  const [score, answerable] = [support.score, support.answerable].map((each) => Math.round(100 * each));
  return (
    <p className="support quiet">
      <meter aria-label="Support" min={0} max={100} value={score} /> The sources support the answer to {score} % and
      answer the question to {answerable} %.
    </p>
  );
}

function Warnings({ answer: { warnings, status } }: { answer: Answer }) {
  if (!warnings.length) return null;
  return (
    <details className="warnings" open={status !== "answered"}>
      <summary>Warnings ({warnings.length})</summary>
      <ul>
        {[...new Set(warnings)].map((warning) => (
          <li key={warning}>{warning}</li>
        ))}
      </ul>
    </details>
  );
}
