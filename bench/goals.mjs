// A goal of a row, as text and as a judgement. Without every figure that it needs it is neither met nor missed.
const KINDS = {
  least: { text: (n) => `≥ ${n.toLocaleString('en')}`, met: (n, { ours }) => ours >= n, needs: [] },
  most: { text: (n) => `≤ ${n.toLocaleString('en')}`, met: (n, { ours }) => ours <= n, needs: [] },
  timesBullmq: { text: (n) => `≥ ${n} x BullMQ`, met: (n, { ours, bullmq }) => ours >= n * bullmq, needs: ['bullmq'] },
  timesBee: {
    text: (n) => `≥ ${n} x bee-queue`,
    met: (n, { ours, beeQueue }) => ours >= n * beeQueue,
    needs: ['beeQueue'],
  },
  shareOfBullmq: {
    text: (n) => `≤ ${n} x BullMQ`,
    met: (n, { ours, bullmq }) => ours <= n * bullmq,
    needs: ['bullmq'],
  },
  ofBare: { text: (n) => `≥ ${n * 100} % of bare`, met: (n, { ours, bare }) => ours >= n * bare, needs: ['bare'] },
};

export function goalText(goal) {
  if (!goal) return null;
  return Object.entries(goal)
    .map(([kind, n]) => KINDS[kind].text(n))
    .join(', ');
}

/** @returns null when there is no goal, or when a figure is missing that could still decide it */
export function isMet(goal, figures) {
  if (!goal || figures.ours === null) return null;
  const has = (library) => typeof figures[library] === 'number';
  const judged = Object.entries(goal).map(([kind, n]) =>
    KINDS[kind].needs.every(has) ? KINDS[kind].met(n, figures) : null,
  );
  if (judged.includes(false)) return false;
  return judged.includes(null) ? null : true;
}
