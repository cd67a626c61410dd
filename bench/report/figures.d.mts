export function figuresPicture(scenarios: readonly object[]): string;
