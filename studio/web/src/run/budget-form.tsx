import { useState } from "react";
import { post } from "../api";
import { spent } from "../format";
import { budgetOf, LimitsForm, limitsOf } from "../limits";
import { Problem } from "../parts";
import type { Cost, Thread } from "../types";
import { useAction } from "../server";

interface Props {
  thread: Thread;
  cost: Cost;
  took?: number | undefined;
  onResumed: () => void;
}

/** The cost of a run that reached its budget, and a form to resume it with a larger one. */
export function BudgetForm({ thread, cost, took, onResumed }: Props) {
  const [limits, setLimits] = useState(limitsOf(thread.options.budget));
  const resuming = useAction(async () => {
    await post(`runs/${thread.id}/resume`, { budget: budgetOf(limits) });
    onResumed();
  });
  return (
    <form
      className="new-budget stack"
      aria-label="Larger budget"
      onSubmit={(event) => {
        event.preventDefault();
        if (!resuming.busy) void resuming.run();
      }}
    >
      <p>
        The run reached its budget: {spent(cost, took)} so far. Resume it with a larger one. Calls and tokens count from
        the beginning of the run, seconds from now.
      </p>
      <LimitsForm limits={limits} onType={setLimits} />
      <div className="row">
        <button className="primary" disabled={resuming.busy}>
          Resume
        </button>
      </div>
      <Problem>{resuming.problem}</Problem>
    </form>
  );
}
