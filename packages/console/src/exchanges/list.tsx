/** The list: only the rows in view are elements, and they are used again while it scrolls. */

import type { JSX } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useKeys } from '../lib/keys.ts';
import type { Column, Row } from './columns.tsx';
import type { ExchangeList } from './store.ts';

/** The height of a row in pixels, as the style sheet has it. */
const ROW_HEIGHT = 28;

/** Rows above and below the view that are elements, too. */
const MARGIN = 8;

/** Also for negative values. */
const modulo = (value: number, by: number): number => ((value % by) + by) % by;

interface ListProps {
  list: ExchangeList;
  columns: readonly Column[];
  chosen: string;
  onChoose: (id: string) => void;
}

/** The rows of a list. */
export function List({ list, columns, chosen, onChoose }: ListProps): JSX.Element {
  const scroll = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ first: 0, count: 40 });
  const version = list.version.value;
  const { length, isComplete } = list.rows;

  const measure = (): void => {
    const element = scroll.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / ROW_HEIGHT) - MARGIN);
    const count = Math.ceil(element.clientHeight / ROW_HEIGHT) + 2 * MARGIN;
    setView((before) => (before.first === first && before.count === count ? before : { first, count }));
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    if (scroll.current) observer.observe(scroll.current);
    return () => observer.disconnect();
  }, []);
  // New rows on top must not move what is being read.
  useLayoutEffect(() => {
    const element = scroll.current;
    const { added } = list;
    list.added = 0;
    if (element && element.scrollTop > 0 && added !== 0) element.scrollTop += added * ROW_HEIGHT;
    measure();
  }, [version]);
  const last = view.first + view.count;
  useEffect(() => list.load(view.first, last), [version, view.first, last]);
  useSelection(list, chosen, onChoose, scroll);

  const now = useClock();
  const template = { gridTemplateColumns: columns.map(({ width }) => width).join(' ') };
  const rows = list.rows.slice(view.first, last);
  return (
    <div class="grid" role="grid" aria-label="Exchanges, newest first" aria-rowcount={isComplete ? length + 1 : -1}>
      <div role="rowgroup">
        <div class="line head" role="row" aria-rowindex={1} style={template}>
          {columns.map(({ id, title, isRight }) => (
            <span key={id} role="columnheader" class={isRight ? 'right' : undefined}>
              {title}
            </span>
          ))}
        </div>
      </div>
      <div
        class="scroll"
        role="rowgroup"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
        tabIndex={0}
        ref={scroll}
        onScroll={measure}
      >
        <div role="presentation" style={{ height: `${length * ROW_HEIGHT}px` }} />
        {rows.map((row, offset) => {
          const index = view.first + offset;
          return (
            <Line
              // The same element shows another row when it scrolls into view, and keeps its row when others are added above.
              key={modulo(index - list.shift, view.count)}
              row={row}
              index={index}
              columns={columns}
              template={template.gridTemplateColumns}
              isChosen={row !== undefined && row.id === chosen}
              now={row?.outcome === 'live' ? now : 0}
              onChoose={onChoose}
            />
          );
        })}
      </div>
    </div>
  );
}

interface LineProps {
  row: Row | undefined;
  index: number;
  columns: readonly Column[];
  template: string;
  isChosen: boolean;
  now: number;
  onChoose: (id: string) => void;
}

function Line({ row, index, columns, template, isChosen, now, onChoose }: LineProps): JSX.Element {
  // Rows that only move are not compared cell by cell.
  const cells = useMemo(
    () =>
      columns.map(({ id, isRight, show }) => (
        <span key={id} role="gridcell" class={isRight ? 'right' : undefined}>
          {row ? show(row, now) : '…'}
        </span>
      )),
    [row, columns, now],
  );
  const state = `${isChosen ? ' is-chosen' : ''}${row?.outcome === 'live' ? ' is-live' : ''}`;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the keys of its rows
    <div
      class={`line${state}`}
      role="row"
      id={row && `row-${row.id}`}
      aria-rowindex={index + 2}
      aria-selected={isChosen}
      style={{ gridTemplateColumns: template, transform: `translateY(${index * ROW_HEIGHT}px)` }}
      onClick={() => row && onChoose(row.id)}
    >
      {cells}
    </div>
  );
}

/** The keys that move the selection, which the view follows. */
function useSelection(
  list: ExchangeList,
  chosen: string,
  onChoose: (id: string) => void,
  scroll: { current: HTMLDivElement | null },
): void {
  const move = (step: number): void => {
    const at = chosen === '' ? -1 : list.rows.indexOf(chosen);
    const target = Math.min(list.rows.length - 1, Math.max(0, at < 0 ? 0 : at + step));
    const [row] = list.rows.slice(target, target + 1);
    if (!row) return;
    onChoose(row.id);
    reveal(scroll.current, target);
  };
  const page = (): number => Math.max(1, Math.floor((scroll.current?.clientHeight ?? 0) / ROW_HEIGHT) - 1);
  const down = { about: 'next exchange', run: () => move(1) };
  const up = { about: 'previous exchange', run: () => move(-1) };
  useKeys(
    {
      j: down,
      k: up,
      ArrowDown: down,
      ArrowUp: up,
      PageDown: { about: 'a screen down', run: () => move(page()) },
      PageUp: { about: 'a screen up', run: () => move(-page()) },
      Home: { about: 'newest exchange', run: () => move(Number.NEGATIVE_INFINITY) },
    },
    [list, chosen],
  );
}

function reveal(element: HTMLDivElement | null, index: number): void {
  if (!element) return;
  const top = index * ROW_HEIGHT;
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + ROW_HEIGHT > element.scrollTop + element.clientHeight)
    element.scrollTop = top + ROW_HEIGHT - element.clientHeight;
}

/** The time of the durations of running exchanges. */
function useClock(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
