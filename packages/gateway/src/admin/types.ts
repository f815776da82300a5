/** Types of the admin API for the console, derived from its schemas. Types only: nothing of this is in a bundle. */

import type { z } from 'zod';
import type { AdminRoutes } from './routes.ts';
import type { CLIENT, EXCHANGE, MODEL, PROBLEM, PROVIDER } from './views.ts';

/** One exchange. */
export type Exchange = z.infer<typeof EXCHANGE>;

/** A provider and its health. */
export type Provider = z.infer<typeof PROVIDER>;

/** A model name and its targets. */
export type Model = z.infer<typeof MODEL>;

/** How a client is pointed at the gateway. */
export type Client = z.infer<typeof CLIENT>;

/** An error response. */
export type ProblemBody = z.infer<typeof PROBLEM>;

/** The bodies of all JSON responses, by method and path: `AdminResponses['GET exchanges/{id}']`. */
export type AdminResponses = {
  [R in AdminRoutes as `${R['method']} ${R['path']}`]: R extends { response: infer Schema extends z.ZodType }
    ? z.infer<Schema>
    : never;
};

/** The conversation of a captured exchange. */
export type Conversation = AdminResponses['GET exchanges/{id}/conversation'];

/** A captured exchange. */
export type Capture = AdminResponses['GET exchanges/{id}/tape'];

/** A client key, without its secret. */
export type Key = AdminResponses['GET keys/{id}'];

/** A budget and what is left of it. */
export type Budget = AdminResponses['GET budgets']['budgets'][number];

/** Usage of one group. */
export type Usage = AdminResponses['GET usage']['usage'][number];

/** A setting in force. */
export type Setting = AdminResponses['GET config/settings']['settings'][number];
