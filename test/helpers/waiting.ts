/**
 * How many ms this process waits from now on. What it computes, or cannot because the machine does something else, is not counted: so this
 * tells whether something waited in vain, and for how long, on a busy machine too.
 */
export function waiting(): () => number {
  const before = performance.eventLoopUtilization();
  return () => performance.eventLoopUtilization(before).idle;
}
