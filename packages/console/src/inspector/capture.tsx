/** The inspector of a capture as the admin API sends it. */

import type { InspectInput } from '@gateway/capture/inspect/inspect';
import { parseCapture } from '@gateway/capture/json';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { Failure } from '../ui/parts.tsx';
import { Inspector } from './view.tsx';

/** Reads a capture and shows its stream. */
export function CaptureInspector({
  name,
  json,
  onDownload,
}: {
  name: string;
  json: unknown;
  onDownload: () => void;
}): JSX.Element {
  const input = useMemo((): InspectInput | string => {
    try {
      return { is: 'capture', name, capture: parseCapture(json) };
    } catch (error) {
      return `The capture cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    }
  }, [name, json]);
  return typeof input === 'string' ? <Failure message={input} /> : <Inspector input={input} onDownload={onDownload} />;
}
