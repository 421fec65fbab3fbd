import { count, seconds } from "../format";
import type { CallText } from "../types";

/** The model calls of a step: prompts and replies. */
export function Calls({ calls }: { calls: CallText[] }) {
  return calls.map((call) => (
    <details key={call.id} className="box call" open>
      <summary>
        Model call: {call.name || call.role}{" "}
        <span className="quiet">
          {count(call.prompt_tokens + call.completion_tokens, "token")} · {seconds(call.seconds)}
        </span>
      </summary>
      <div className="pair">
        <section aria-label="Prompt">
          <h3>Prompt</h3>
          <pre>{call.prompt}</pre>
        </section>
        <section aria-label="Reply">
          <h3>Reply</h3>
          <pre>{call.reply}</pre>
        </section>
      </div>
    </details>
  ));
}
