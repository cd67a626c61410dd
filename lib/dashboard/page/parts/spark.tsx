import { jobs } from '../format.js';
import { sum } from '../sums.js';

const WIDTH = 120;
const HEIGHT = 22;

/** How many jobs fall due in each of the next minutes, as bars. */
export function Spark({ counts }: { counts: readonly number[] }) {
  const most = Math.max(...counts, 1);
  const width = WIDTH / Math.max(1, counts.length);
  const title = `Next hour: ${jobs(sum(counts))}, at most ${jobs(Math.max(...counts, 0))} a minute`;
  return (
    <svg class="spark" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={title}>
      <title>{title}</title>
      <rect class="ground" width={WIDTH} y={HEIGHT - 1} height={1} />
      {counts.map((many, n) => {
        const height = many === 0 ? 0 : Math.max(2, (many / most) * (HEIGHT - 1));
        return <rect key={n} x={n * width} y={HEIGHT - height} width={width * 0.8} height={height} />;
      })}
    </svg>
  );
}
