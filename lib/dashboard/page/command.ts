/** What shows the same job on the command line, for a POSIX shell. */
export function commandFor(queue: string, id: string): string {
  return ['npx', 'nestjs-delay-queue', 'get', ...(queue.startsWith('-') || id.startsWith('-') ? ['--'] : []), queue, id]
    .map(quoted)
    .join(' ');
}

function quoted(word: string): string {
  return /^[\w.,:/@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
