import type { Live, LiveStep } from "../events";
import { Busy } from "../parts";
import { hrefOf } from "../route";
import { draftOf, findingsOf, workOf } from "./sentences";
import { surveyOf } from "./survey";
import { SurveyTable } from "./survey-table";

interface Props {
  steps: LiveStep[];
  id: string;
}

interface ProgressProps extends Props {
  live: Live;
  running: boolean;
}

/** A run that has no answer: its steps so far, the latest last, and replies while they are written. */
export function Progress({ live, steps, running, id }: ProgressProps) {
  const drafts = Object.entries(live.drafts).filter(([, { text }]) => draftOf(text));
  const survey = surveyOf(live);
  const waiting = running && !steps.some((step) => step.state === "running");
  return (
    <section aria-label="Steps">
      {survey ? <SurveyTable survey={survey} /> : <StepList steps={steps} id={id} />}
      {!survey &&
        drafts.map(([call, draft]) => (
          <p className="draft" key={call}>
            {draftOf(draft.text)}
          </p>
        ))}
      {waiting && <Busy>{steps.length ? "Waiting for the next step" : "Waiting for its turn"}</Busy>}
      {live.end?.kind === "stopped" && (
        <p className="hint">Stopped. Resume it to continue; no finished model call is repeated.</p>
      )}
    </section>
  );
}

export function StepList({ steps, id }: Props) {
  return (
    <ol className="steps">
      {steps.map((step, at) => (
        <Step key={at} step={step} id={id} />
      ))}
    </ol>
  );
}

const MARKS = { running: "◌", done: "✓", interrupted: "○" };

function Step({ step, id }: { step: LiveStep; id: string }) {
  return (
    <li className={`step is-${step.state}`} data-node={step.node}>
      {step.resumed && <p className="resumed">Resumed</p>}
      <p>
        <span aria-hidden="true" className="mark">
          {MARKS[step.state]}
        </span>{" "}
        <strong>{workOf(step.node, step.state === "running")}</strong>{" "}
        {step.thread !== id && <a href={hrefOf("runs", step.thread)}>{step.method}</a>}{" "}
        <span className="quiet">{step.state === "interrupted" ? "stopped" : findingsOf(step).join(" · ")}</span>
      </p>
    </li>
  );
}
