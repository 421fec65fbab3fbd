import { linesOf } from "../changes";
import { callsIn, costOf } from "../cost";
import type { Live, LiveStep } from "../events";
import { spent } from "../format";
import { Busy } from "../parts";
import { hrefOf } from "../route";

interface Props {
  live: Live;
  running: boolean;
  id: string;
}

/** The steps so far with their findings, the latest last, and replies while they are written. */
export function Steps({ live, running, id }: Props) {
  const drafts = Object.entries(live.drafts);
  const working = live.steps.filter((step) => step.state === "running").map((step) => step.node);
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">Steps</h2>
      <ol className="steps">
        {live.steps.map((step, at) => (
          <Step key={at} step={step} id={id} />
        ))}
      </ol>
      {drafts.map(([call, draft]) => (
        <p className="draft" key={call}>
          {draft.node}: {plain(draft.text)}
        </p>
      ))}
      {running && <Busy>{working.length ? `Working: ${working.join(", ")}` : "Waiting for the next step"}</Busy>}
      {live.end?.kind === "stopped" && (
        <p className="hint">Stopped. Resume it to continue; no finished model call is repeated.</p>
      )}
    </section>
  );
}

/** The text of a reply without JSON syntax. */
function plain(text: string): string {
  return /^\s*[{[]/.test(text) ? text.replace(/[{}[\]"\s]+/g, " ") : text;
}

const MARKS = { running: "◌", done: "●", interrupted: "○" };

function Step({ step, id }: { step: LiveStep; id: string }) {
  const cost = costOf(callsIn(step.update));
  return (
    <li className={`step is-${step.state}`}>
      {step.resumed && <p className="resumed">Resumed</p>}
      <div className="row">
        <span aria-hidden="true" className="mark">
          {MARKS[step.state]}
        </span>
        <strong>{step.node}</strong>
        {step.thread !== id && <a href={hrefOf("runs", step.thread)}>{step.method}</a>}
        {step.state === "running" && <span className="quiet">running</span>}
        {step.state === "interrupted" && <span className="quiet">interrupted</span>}
        {cost.calls > 0 && <span className="quiet">{spent(cost)}</span>}
      </div>
      {linesOf(step.update).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </li>
  );
}
