import { useState } from "react";
import { hasKey, keepKey } from "./api";
import { Dialog } from "./dialog";
import { Problem } from "./parts";

/** Asks for the key that the server wants; it is kept until this tab is closed. */
export function KeyDialog({ onKey }: { onKey: () => void }) {
  const [key, setKey] = useState("");
  const [refused] = useState(hasKey);
  const submit = (event: React.SubmitEvent) => {
    event.preventDefault();
    keepKey(key.trim());
    onKey();
  };
  return (
    <Dialog title="This server asks for a key">
      <form onSubmit={submit} className="stack">
        <Problem>{refused && "The server does not take that key. Try another one."}</Problem>
        <label>
          Key
          <input
            type="password"
            autoComplete="current-password"
            required
            value={key}
            onChange={(event) => {
              setKey(event.target.value);
            }}
          />
        </label>
        <p className="quiet">It is kept in this tab only, and sent to this server only.</p>
        <div className="row">
          <button className="primary">Use this key</button>
        </div>
      </form>
    </Dialog>
  );
}
