import { useState } from "react";
import { FilterField } from "./filter-field";
import { isWhole, MethodPanel, PLANNING, type Way } from "./method-panel";
import { Problem } from "./parts";
import { isSendable, QuestionField } from "./question-field";
import type { Action } from "./server";
import type { Method } from "./types";

interface Props {
  label: string;
  placeholder: string;
  question: string;
  onType: (question: string) => void;
  sending: Action<[]>;
  /** Those that can be chosen; none where the method is given. */
  methods: Method[];
  method: Method | undefined;
  way: Way;
  onChange: (way: Way) => void;
  /** The field receives the focus when it is shown. */
  focused?: boolean;
  /** Also the filter of documents and the plan can be chosen. */
  isFirst?: boolean;
}

/** The box for a question, with how it is answered in quiet buttons below its text. */
export function Composer(props: Props) {
  const { label, placeholder, question, onType, sending, methods, method, way, onChange } = props;
  const { focused = false, isFirst = false } = props;
  const [open, setOpen] = useState("");
  const toggle = (part: string) => setOpen(open === part ? "" : part);
  const canSend = isSendable(question) && !sending.busy;
  const submit = (event: React.SyntheticEvent) => {
    event.preventDefault();
    if (!canSend) return;
    setOpen("");
    void sending.run();
  };
  const plan = () => {
    const approval = !way.approval;
    const hasPlan = method && (isWhole(method) || method.name === PLANNING);
    onChange({ ...way, ...(approval && !hasPlan ? { method: PLANNING, typed: {} } : {}), approval });
  };
  return (
    <form className="composer" aria-label={label} onSubmit={submit}>
      <div className="composer-box">
        <QuestionField
          label={label}
          placeholder={placeholder}
          value={question}
          onType={onType}
          onSubmit={submit}
          focused={focused}
        />
        <div className="row">
          {methods.length > 0 && (
            <button type="button" className="pill" aria-expanded={open === "method"} onClick={() => toggle("method")}>
              <span className="unseen">Method: </span>
              {method?.name ?? "…"} <span aria-hidden="true">▾</span>
            </button>
          )}
          {isFirst && (
            <>
              <button type="button" className="pill" aria-expanded={open === "filter"} onClick={() => toggle("filter")}>
                {way.where || "All documents"} <span aria-hidden="true">▾</span>
              </button>
              <button type="button" className="pill" aria-pressed={way.approval} onClick={plan}>
                Plan first
              </button>
            </>
          )}
          <button className="send" aria-label="Send" disabled={!canSend}>
            <svg aria-hidden="true" width="18" height="18" viewBox="0 0 24 24">
              <path d="M12 20V5m-7 7 7-7 7 7" />
            </svg>
          </button>
        </div>
      </div>
      <Problem>{sending.problem}</Problem>
      {open === "filter" && <FilterField where={way.where} onType={(where) => onChange({ ...way, where })} />}
      {open === "method" && method && <MethodPanel methods={methods} method={method} way={way} onChange={onChange} />}
    </form>
  );
}
