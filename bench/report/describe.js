/** Charts in words, for readers who do not see them. */
import { formatFigure } from './frame.js';

const describeValue = ({ label, value }) => `${label} ${formatFigure(value.median)}`;

/** `Passing, CPU a chunk in µs: nginx 15.8, …` */
export function describeBars({ title, blocks }) {
  const panels = blocks.flatMap((block) =>
    block.panels.map((panel) => {
      const name = [block.title, panel.title].filter(Boolean).join(', ');
      return `${name} in ${panel.unit}: ${panel.bars.map(describeValue).join(', ')}.`;
    }),
  );
  return [`${title}.`, ...panels].join(' ');
}

/** The first and the last point of every curve. */
export function describeCurves({ title, panels }) {
  const described = panels.map(({ title: name, unit, xTitle, xs, curves }) => {
    const labelOf = (x) => xs.find(([value]) => value === x)?.[1] ?? String(x);
    const ends = curves.map(({ label, points }) => {
      const [first, last] = [points[0], points.at(-1)];
      const from = `${formatFigure(first.value.median)} at ${labelOf(first.x)}`;
      return points.length === 1
        ? `${label} ${from}`
        : `${label} ${from}, ${formatFigure(last.value.median)} at ${labelOf(last.x)}`;
    });
    return `${name} (${unit}) by ${xTitle}: ${ends.join('; ')}.`;
  });
  return [`${title}.`, ...described].join(' ');
}
