/** Of numbers in ascending order. */
export function percentile(sorted, part) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
}

export function ascending(numbers) {
  return [...numbers].sort((a, b) => a - b);
}

export function median(numbers) {
  const sorted = ascending(numbers);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** As Promise.withResolvers(), which Node 20 lacks. */
export function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((fulfil, refuse) => {
    resolve = fulfil;
    reject = refuse;
  });
  return { promise, resolve, reject };
}
