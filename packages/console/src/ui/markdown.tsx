/** Markdown as elements. Nothing is parsed as HTML. */

import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { type Block, type Inline, MAX_MARKDOWN, parseMarkdown } from '../lib/markdown.ts';

/** The text of a model, with its Markdown. */
export function Markdown({ text }: { text: string }): JSX.Element {
  const blocks = useMemo(() => (text.length > MAX_MARKDOWN ? undefined : parseMarkdown(text)), [text]);
  return blocks ? <div class="markdown">{blocks.map(renderBlock)}</div> : <pre class="text">{text}</pre>;
}

function renderBlock(block: Block, key: number): JSX.Element {
  switch (block.type) {
    case 'paragraph':
      return <p key={key}>{block.content.map(renderInline)}</p>;
    case 'heading':
      // The page has the first two levels.
      return (
        <p key={key} class={`h h${block.level}`} role="heading" aria-level={Math.min(6, block.level + 2)}>
          {block.content.map(renderInline)}
        </p>
      );
    case 'code':
      return (
        <pre key={key} class="code">
          {block.text}
        </pre>
      );
    case 'quote':
      return <blockquote key={key}>{block.content.map(renderBlock)}</blockquote>;
    case 'list': {
      const items = block.items.map((item, index) => <li key={index}>{item.map(renderInline)}</li>);
      return block.isOrdered ? <ol key={key}>{items}</ol> : <ul key={key}>{items}</ul>;
    }
    case 'rule':
      return <hr key={key} />;
    default:
      return block satisfies never;
  }
}

function renderInline(part: Inline, key: number): JSX.Element | string {
  switch (part.type) {
    case 'text':
      return part.text;
    case 'code':
      return <code key={key}>{part.text}</code>;
    case 'strong':
      return <strong key={key}>{part.content.map(renderInline)}</strong>;
    case 'em':
      return <em key={key}>{part.content.map(renderInline)}</em>;
    case 'link':
      return (
        <a key={key} href={part.href} title={part.href} rel="noopener noreferrer nofollow" target="_blank">
          {part.text}
        </a>
      );
    default:
      return part satisfies never;
  }
}
