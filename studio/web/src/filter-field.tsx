/** What a filter of documents looks like. */
export const FILTER = "tag=contract date>=2025 path:reports/**";

interface FilterFieldProps {
  where: string;
  onType: (where: string) => void;
}

/** Field for a filter of documents by their metadata. */
export function FilterField({ where, onType }: FilterFieldProps) {
  return (
    <label className="filter-field">
      Only documents that match
      <input
        maxLength={2000}
        placeholder={FILTER}
        spellCheck={false}
        value={where}
        onChange={(event) => onType(event.target.value)}
      />
    </label>
  );
}
