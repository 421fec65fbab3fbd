interface FilterFieldProps {
  where: string;
  onType: (where: string) => void;
}

/** Field for a filter of documents by their metadata. */
export function FilterField({ where, onType }: FilterFieldProps) {
  return (
    <label className="inline find">
      Only documents that match
      <input
        maxLength={2000}
        placeholder="tag=contract date>=2025 path:reports/**"
        spellCheck={false}
        value={where}
        onChange={(event) => onType(event.target.value)}
      />
    </label>
  );
}
