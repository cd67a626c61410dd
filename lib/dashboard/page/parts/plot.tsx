import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { theme } from '../settings.js';

export interface PlotProps {
  /** Makes the options for a width; called again when the width or the theme changes. */
  readonly options: (width: number, inside: HTMLElement) => uPlot.Options;
  readonly data: uPlot.AlignedData;
  /** What the drawing depends on beside the data. */
  readonly key1: string;
  readonly onPlot?: (plot: uPlot) => void;
}

/** One chart of uPlot, as wide as there is room. The numbers are in the table beside it: a canvas says nothing to many. */
export function Plot({ options, data, key1, onPlot }: PlotProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef({ options, data, onPlot });
  latest.current = { options, data, onPlot };

  useEffect(() => {
    const inside = frame.current!;
    const draw = () => {
      const width = inside.clientWidth;
      if (width === 0) return;
      plot.current?.destroy();
      plot.current = new uPlot(latest.current.options(width, inside), latest.current.data, inside);
      latest.current.onPlot?.(plot.current);
    };
    draw();
    let width = inside.clientWidth;
    const sizes = new ResizeObserver(() => {
      if (inside.clientWidth === width) return;
      width = inside.clientWidth;
      draw();
    });
    sizes.observe(inside);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [theme.value, key1]);

  useEffect(() => {
    if (plot.current && plot.current.data !== data) plot.current.setData(data);
  }, [data]);

  return <div ref={frame} aria-hidden="true" />;
}
