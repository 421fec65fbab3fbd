import { useState } from "react";
import { hasKey, keepKey } from "./api";
import { Dialog } from "./dialog";
import { Problem } from "./parts";

/** Dialog for the API key, which is stored until this tab is closed. */
export function KeyDialog({ onKey }: { onKey: () => void }) {
  const [key, setKey] = useState("");
  const [refused] = useState(hasKey);
  const submit = (event: React.SubmitEvent) => {
    event.preventDefault();
    keepKey(key.trim());
    onKey();
  };
  return (
    <Dialog title="This server requires an API key">
      <form onSubmit={submit} className="stack">
        <Problem>{refused && "The server rejected this key. Try another one."}</Problem>
        <label>
          Key
          <input
            type="password"
            autoComplete="current-password"
            required
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        <p className="quiet">The key is stored in this tab only and sent to this server only.</p>
        <div className="row">
          <button className="primary">Use this key</button>
        </div>
      </form>
    </Dialog>
  );
}
