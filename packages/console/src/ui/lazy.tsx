/** Components whose code is loaded when they are first shown. */

import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Failure } from './parts.tsx';

/** A component of another file, which is not part of the page that uses it. */
export function lazy<Props extends object>(
  load: () => Promise<{ readonly default: ComponentType<Props> }>,
): (props: Props) => JSX.Element {
  return function Lazy(props) {
    const [loaded, setLoaded] = useState<{ readonly component?: ComponentType<Props>; readonly message?: string }>({});
    useEffect(() => {
      load().then(
        ({ default: component }) => setLoaded({ component }),
        (error: unknown) => setLoaded({ message: String(error) }),
      );
    }, []);
    const { component: Component, message } = loaded;
    if (message !== undefined) return <Failure message={`This part cannot be loaded; reload the page. ${message}`} />;
    return Component ? <Component {...props} /> : <p class="muted">Loading…</p>;
  };
}
