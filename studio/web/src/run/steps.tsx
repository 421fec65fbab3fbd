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

/** The steps so far, the latest last, with what each has found; replies are shown while they are written. */
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
          {draft.node} writes: {plain(draft.text)}
        </p>
      ))}
      {running && <Busy>{working.length ? `Working: ${working.join(", ")}` : "Waiting for the next step"}</Busy>}
      {live.end?.kind === "stopped" && <p className="hint">Stopped. It can be resumed; nothing is asked twice.</p>}
    </section>
  );
}

/** What a reply says, without the JSON that it says it in. */
function plain(text: string): string {
  return /^\s*[{[]/.test(text) ? text.replace(/[{}[\]"\s]+/g, " ") : text;
}

const MARKS = { running: "◌", done: "●", broken: "○" };

function Step({ step, id }: { step: LiveStep; id: string }) {
  const cost = costOf(callsIn(step.update));
  return (
    <li className={`step is-${step.state}`}>
      {step.again && <p className="again">Went on</p>}
      <div className="row">
        <span aria-hidden="true" className="mark">
          {MARKS[step.state]}
        </span>
        <strong>{step.node}</strong>
        {step.thread !== id && <a href={hrefOf("runs", step.thread)}>{step.method}</a>}
        {step.state === "running" && <span className="quiet">at work</span>}
        {step.state === "broken" && <span className="quiet">broken off</span>}
        {cost.calls > 0 && <span className="quiet">{spent(cost)}</span>}
      </div>
      {linesOf(step.update).map((line) => (
        <p key={line}>{line}</p>
      ))}
    </li>
  );
}
