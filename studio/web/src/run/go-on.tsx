import { useState } from "react";
import { post } from "../api";
import { spent } from "../format";
import { budgetOf, LimitsForm, limitsOf } from "../limits";
import { Problem } from "../parts";
import type { Cost, Thread } from "../types";
import { useAction } from "../use";

interface Props {
  thread: Thread;
  cost: Cost;
  took?: number | undefined;
  onResumed: () => void;
}

/** For a run that its budget has ended: what it has cost, and another budget to go on with. */
export function GoOn({ thread, cost, took, onResumed }: Props) {
  const [limits, setLimits] = useState(limitsOf(thread.options.budget));
  const going = useAction(async () => {
    await post(`runs/${thread.id}/resume`, { budget: budgetOf(limits) });
    onResumed();
  });
  return (
    <form
      className="go-on stack"
      aria-label="Another budget"
      onSubmit={(event) => {
        event.preventDefault();
        if (!going.busy) void going.run();
      }}
    >
      <p>
        The budget was used up: {spent(cost, took)} so far. With another one it resumes where it was: calls and tokens
        count from the beginning, seconds from now.
      </p>
      <LimitsForm limits={limits} onType={setLimits} />
      <div className="row">
        <button className="primary" disabled={going.busy}>
          Go on
        </button>
      </div>
      <Problem>{going.problem}</Problem>
    </form>
  );
}
