import { useState } from "react";
import { request } from "../api";
import { textOf } from "../json";
import { Problem } from "../parts";
import { refresh, useAction } from "../server";
import type { Thread } from "../types";

const RATINGS = [
  { rating: "up", label: "Good answer" },
  { rating: "down", label: "Bad answer" },
];

/** Thumbs and a comment, stored with the run. */
export function Feedback({ thread }: { thread: Thread }) {
  const stored = thread.feedback ?? {};
  const [rating, setRating] = useState(textOf(stored.rating));
  const [comment, setComment] = useState(textOf(stored.comment));
  const [saved, setSaved] = useState("");
  const saving = useAction(async (chosen: string) => {
    const body = JSON.stringify({ rating: chosen || null, comment });
    const headers = { "Content-Type": "application/json" };
    await request(`runs/${thread.id}/feedback`, { method: "PUT", headers, body });
    setSaved("Saved. Thank you.");
    refresh(`runs/${thread.id}`);
  });
  return (
    <form
      className="row feedback"
      aria-label="Feedback"
      onSubmit={(event) => {
        event.preventDefault();
        void saving.run(rating);
      }}
    >
      {RATINGS.map(({ rating: name, label }) => (
        <button
          key={name}
          type="button"
          aria-label={label}
          aria-pressed={rating === name}
          onClick={() => {
            const chosen = rating === name ? "" : name;
            setRating(chosen);
            void saving.run(chosen);
          }}
        >
          <Thumb isDown={name === "down"} />
        </button>
      ))}
      <span className="quiet" role="status">
        {saved}
      </span>
      {rating && (
        <>
          <input
            aria-label="Comment"
            placeholder="What is good or wrong?"
            maxLength={2000}
            value={comment}
            onChange={(event) => {
              setComment(event.target.value);
              setSaved("");
            }}
          />
          <button disabled={saving.busy}>Save the comment</button>
        </>
      )}
      <Problem>{saving.problem}</Problem>
    </form>
  );
}

/** A drawn thumb: fonts for emoji are missing on many computers. */
function Thumb({ isDown }: { isDown: boolean }) {
  return (
    <svg aria-hidden="true" width="18" height="18" viewBox="0 0 24 24" className={isDown ? "thumb down" : "thumb"}>
      <path d="M7 10v11H3V10h4Zm0 0 4-8a3 3 0 0 1 3 3v4h5.5a2 2 0 0 1 2 2.4l-1.4 7A2 2 0 0 1 18.1 21H7" />
    </svg>
  );
}
