import { useState, type ReactNode } from "react";
import { DocumentDialog } from "../documents/document-dialog";
import { words } from "../format";
import { EXPLANATIONS, lookOf } from "../outcome";
import { Chip } from "../parts";
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
  const beside = answer.citations.length > 0 && !folded;
  return (
    <div className={beside ? "with-sources" : "stack"}>
      <div className="stack">
        {linked?.notice && <p className="hint">{linked.notice}</p>}
        <section aria-label={label} className={`answer is-${lookOf(answer)}`}>
          {lookOf(answer) === "weak" && (
            <p>
              <Chip status="weakly supported" look="weak" />
            </p>
          )}
          {answer.text && !asksForApproval(answer) && <AnswerMarkdown answer={answer} onOpen={setOpened} />}
          <Verdict answer={answer} />
          <Support answer={answer} />
          <Warnings answer={answer} />
        </section>
      </div>
      {folded && answer.citations.length ? (
        <details className="box">
          <summary>Sources ({answer.citations.length})</summary>
          {sources}
        </details>
      ) : (
        sources
      )}
      {children && <div className="stack">{children}</div>}
      {opened && <DocumentDialog citation={opened} onClose={() => setOpened(null)} />}
    </div>
  );
}

function Verdict({ answer: { status, support } }: { answer: Answer }) {
  const explanation = EXPLANATIONS[status];
  return (
    <>
      {explanation && (
        <p className="verdict">
          <strong>{words(status)}</strong> – {explanation}
        </p>
      )}
      {support?.replaced && (
        <p className="verdict">The reader had answered “{support.replaced}”, which the sources support less.</p>
      )}
    </>
  );
}

/** How well the sources support an answer: in words, and on a click in figures. */
function Support({ answer }: { answer: Answer }) {
  const { support } = answer;
  const sentence = SENTENCES[lookOf(answer)] ?? "How well the sources support an answer";
  if (!support) return null;
  const [score, answerable] = [support.score, support.answerable].map((each) => Math.round(100 * each));
  return (
    <details className="support">
      <summary>{sentence}</summary>
      Support of the answer: {score} %. Probability that the sources answer the question: {answerable} %.
    </details>
  );
}

const SENTENCES: Record<string, string> = {
  answered: "The sources support this answer",
  weak: "The sources support this answer only weakly",
};

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
