// Rows whose pick is one figure by its name.
export const row = (name, unit, figure, more) => ({ name, unit, pick: (figures) => figures[figure], ...more });

export const megabytes = (name, figure) => ({ name, unit: 'MB', pick: (figures) => figures[figure] / 1e6 });

export function count(n) {
  return n.toLocaleString('en');
}

export const ALL = ['ours', 'bullmq', 'beeQueue'];
export const WITH_BARE = [...ALL, 'bare'];
export const OURS = ['ours'];
export const MINUTE_MS = 60_000;
