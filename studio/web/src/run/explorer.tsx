/** Explorer of a run: its checkpoints, its state machine, and the details of each step. */

import { useCallback, useMemo } from "react";
import { headOf, pathTo } from "../branches";
import { Busy, Problem } from "../parts";
import { go, hrefOf, replace } from "../route";
import type { Method, Moment, Thread } from "../types";
import { useServer } from "../server";
import { useWide } from "../wide";
import { Machine } from "./machine";
import { StepDetails } from "./step-details";
import { SURVEY } from "./survey";
import { Timeline } from "./timeline";

interface Props {
  thread: Thread;
  at: string;
  /** The form for a fork is open from the beginning. */
  isForking: boolean;
  onBegun: () => void;
}

export default function Explorer({ thread, at, isForking, onBegun }: Props) {
  const { value: history, problem } = useServer<Moment[]>(`runs/${thread.id}/history`);
  const { value: methods } = useServer<Method[]>("methods");
  const isWide = useWide();
  const chosen = history?.some((moment) => moment.checkpoint === at) ? at : (history?.[0]?.checkpoint ?? "");
  const path = useMemo(() => (history ? pathTo(history, headOf(history, chosen)) : []), [history, chosen]);
  const choose = useCallback(
    (checkpoint: string) => go(hrefOf("runs", thread.id, { tab: "explore", at: checkpoint })),
    [thread.id],
  );
  const moment = path.find((each) => each.checkpoint === chosen);
  const method = methods?.find((each) => each.name === thread.method);
  if (problem) return <Problem>{problem}</Problem>;
  if (!history || !methods) return <Busy>Loading the checkpoints</Busy>;
  if (!moment) return <p className="quiet">No checkpoints yet.</p>;
  return (
    <>
      {method && isWide && (
        <section aria-labelledby="machine" className="wide">
          <h2 id="machine">State machine of {method.name}</h2>
          <Machine method={method} path={path} chosen={chosen} onChoose={choose} />
        </section>
      )}
      <div className="explorer">
        <section aria-labelledby="timeline">
          <h2 id="timeline">Checkpoints</h2>
          <Timeline history={history} chosen={chosen} path={path} onChoose={choose} />
        </section>
        <StepDetails
          key={chosen}
          thread={thread}
          moment={moment}
          history={history}
          methods={methods.filter(({ name }) => name !== SURVEY || thread.method === SURVEY)}
          isForking={isForking}
          onBegun={onBegun}
          onUsed={() => {
            // The newest step is followed while the run continues, but not away from what is read or edited.
            if (at === chosen) return;
            replace(hrefOf("runs", thread.id, { tab: "explore", at: chosen, ...(isForking && { fork: "" }) }));
          }}
        />
      </div>
    </>
  );
}
