export function isOf(server: string, said: string): boolean;
