export function plainTable(rows: readonly object[]): string;
