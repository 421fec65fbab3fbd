import { textOf } from "../json";
import type { JsonObject } from "../types";
import { extended, moved, problemOf, rearranged, without } from "./plan";

interface Props {
  steps: JsonObject[];
  /** What a step is called on the button that adds one. */
  noun: string;
  onChange: (steps: JsonObject[]) => void;
}

/** The steps of a plan, to be changed, moved, added and removed. */
export function PlanEditor({ steps, noun, onChange }: Props) {
  const rearrange = (order: number[]) => onChange(rearranged(steps, order));
  return (
    <>
      <ol>
        {steps.map((step, at) => (
          <PlanStep
            key={at}
            number={at + 1}
            count={steps.length}
            label={textOf(step.heading ?? step.name)}
            question={textOf(step.question)}
            onType={(question) => onChange(steps.with(at, { ...step, question }))}
            onRearrange={rearrange}
          />
        ))}
      </ol>
      <button type="button" className="add" onClick={() => rearrange(extended(steps.length))}>
        Add a {noun}
      </button>
    </>
  );
}

/** True if a step names one that is not earlier. */
export function isWrong(steps: readonly JsonObject[]): boolean {
  return steps.some((step, at) => problemOf(textOf(step.question), at + 1));
}

interface StepProps {
  /** The heading of a section, or the name of a column. */
  label: string;
  number: number;
  count: number;
  question: string;
  onType: (question: string) => void;
  onRearrange: (order: number[]) => void;
}

function PlanStep({ label, number, count, question, onType, onRearrange }: StepProps) {
  const at = number - 1;
  const problem = problemOf(question, number);
  const buttons = [
    { label: `Move ${number} up`, sign: "↑", order: moved(count, at, -1), disabled: at === 0 },
    { label: `Move ${number} down`, sign: "↓", order: moved(count, at, 1), disabled: number === count },
    { label: `Remove ${number}`, sign: "✕", order: without(count, at), disabled: count === 1 },
  ];
  return (
    <li>
      {label && <strong>{label}</strong>}
      <div className="plan-step">
        <input
          aria-label={`Step ${number}`}
          required
          maxLength={2000}
          value={question}
          aria-invalid={Boolean(problem)}
          onChange={(event) => onType(event.target.value)}
        />
        {buttons.map(({ label, sign, order, disabled }) => (
          <button key={label} type="button" aria-label={label} disabled={disabled} onClick={() => onRearrange(order)}>
            {sign}
          </button>
        ))}
      </div>
      {problem && <p className="wrong">{problem}</p>}
    </li>
  );
}
