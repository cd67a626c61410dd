type Results = { scenarios: readonly { name: string; ours: number | null }[] };
export function costTable(results: Results): string;
export function withCostTable(page: string, results: Results): string;
