/** Rows as lines whose cells stand under each other; the last cell of a row keeps its own width. `paint` colours a cell that is padded already. */
export function columns(rows: readonly (readonly string[])[], paint: readonly ((cell: string) => string)[] = []): string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, at) => {
        const padded = at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0);
        return paint[at]?.(padded) ?? padded;
      })
      .join('  '),
  );
}
