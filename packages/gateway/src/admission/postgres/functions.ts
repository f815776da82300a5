/**
 * The operations as functions of PostgreSQL, each called by one statement. The same as the scripts for Redis, with locks of rows.
 *
 * `limits_rows` has one row per limit of an epoch: `s:` slots, `c:` counters, `b:` one window of an account. `used`: slots in use, the
 * count of a period, or what is reserved. `limits_leases` has one row per running request, with what it holds, and for a minute after
 * its end. They are not in the write-ahead log: after a crash of the server they are empty, and budgets are read from the ledger.
 *
 * No deadlocks: a call locks its rows in the order of their keys, then inserts those that are missing, then locks leases. A call that
 * finds a row inserted meanwhile gives up with `again`, because it can no longer lock in order.
 */

import { createHash } from 'node:crypto';
import { LEASE_MS, RATE_MS } from '../backend.ts';
import {
  ALIVE_MS,
  CRASH_MS,
  DONE_MS,
  IDLE_MS,
  type Operation,
  PRUNED,
  QUIET_MS,
  REBUILD_MS,
  RELOAD_MS,
} from '../shared/driver.ts';

/** The version of the tables, which is part of their names. */
const FORMAT = 1;

const STATE = `limits${FORMAT}_state`;
const NODES = `limits${FORMAT}_nodes`;
const ROWS = `limits${FORMAT}_rows`;
const LEASES = `limits${FORMAT}_leases`;

/** How often unused rows are deleted, by one node. */
const CLEAN_MS = 60_000;

/** Rows that one call deletes at most. */
const CLEANED = 5000;

/** Half-empty pages keep new versions of a row beside the old ones, where they are removed without a vacuum. */
export const TABLES: readonly string[] = [
  `CREATE UNLOGGED TABLE IF NOT EXISTS ${STATE} (
    prefix text COLLATE "C" PRIMARY KEY, epoch text NOT NULL, run text NOT NULL, ready bigint NOT NULL, cleaned bigint NOT NULL)`,
  `CREATE UNLOGGED TABLE IF NOT EXISTS ${NODES} (
    epoch text COLLATE "C", node text COLLATE "C", seen bigint NOT NULL, PRIMARY KEY (epoch, node))`,
  `CREATE UNLOGGED TABLE IF NOT EXISTS ${ROWS} (
    key text COLLATE "C" PRIMARY KEY, used bigint NOT NULL DEFAULT 0, start bigint, spent bigint NOT NULL DEFAULT 0,
    loaded boolean NOT NULL DEFAULT false, loading boolean NOT NULL DEFAULT false, delta bigint NOT NULL DEFAULT 0,
    dirty bigint, reload bigint NOT NULL DEFAULT 0, expires bigint NOT NULL DEFAULT 0) WITH (fillfactor = 30)`,
  `CREATE INDEX IF NOT EXISTS ${ROWS}_dirty ON ${ROWS} (key) WHERE dirty IS NOT NULL`,
  `CREATE UNLOGGED TABLE IF NOT EXISTS ${LEASES} (
    id text COLLATE "C" PRIMARY KEY, node text, slots text, micros bigint, keys text[] NOT NULL, expires bigint NOT NULL,
    done boolean NOT NULL DEFAULT false)
    WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000)`,
  `CREATE INDEX IF NOT EXISTS ${LEASES}_expires ON ${LEASES} (expires)`,
];

const NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/**
 * Settings of one transaction. It waits for locks no longer than its caller does, and finds rows by their keys: plans are kept for a
 * connection, and those that are made while a table is small read all of it.
 */
const limitCall = (timeout: string): string => `
  PERFORM set_config('lock_timeout', ${timeout}, true), set_config('enable_seqscan', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true);`;

/** Refuses calls for another epoch, and those whose caller has stopped waiting. */
const CHECK = `${limitCall("req->>'timeout'")}
  SELECT epoch, ready INTO state FROM ${STATE} WHERE prefix = req->>'prefix';
  IF state.epoch IS DISTINCT FROM req->>'epoch' THEN RETURN jsonb_build_array('epoch', now); END IF;
  IF now > (req->>'deadline')::bigint THEN RETURN jsonb_build_array('late', now); END IF;`;

/** Variables of every operation. */
const PRELUDE = `
  base text := (req->>'prefix') || (req->>'epoch') || ':';
  now bigint := coalesce((req->>'now')::bigint, ${NOW});
  state record;`;

/** Locks rows and creates missing ones. Then time may have passed. */
const LOCK = `
  IF NOT lock_rows(wanted) THEN RETURN jsonb_build_array('again', now); END IF;
  now := coalesce((req->>'now')::bigint, ${NOW});
  IF now > (req->>'deadline')::bigint THEN RETURN jsonb_build_array('late', now); END IF;`;

/** Adds the keys of the accounts of a request to `wanted`. */
const listKeys = (keys: string): string => `ARRAY(SELECT base || 'b:' || value FROM jsonb_array_elements_text(${keys}))`;

/** Functions that operations use. */
const HELPERS = {
  lock_rows: {
    head: '(keys text[]) RETURNS boolean',
    body: `
DECLARE
  wanted text[] := ARRAY(SELECT DISTINCT w.key COLLATE "C" FROM unnest(keys) AS w (key) ORDER BY 1);
  locked int;
  inserted int;
BEGIN
  PERFORM 1 FROM ${ROWS} WHERE key = ANY (wanted) ORDER BY key FOR UPDATE;
  GET DIAGNOSTICS locked = ROW_COUNT;
  IF locked = cardinality(wanted) THEN RETURN true; END IF;
  INSERT INTO ${ROWS} (key)
    SELECT w.key FROM unnest(wanted) AS w (key) WHERE NOT EXISTS (SELECT 1 FROM ${ROWS} r WHERE r.key = w.key) ORDER BY w.key
    ON CONFLICT DO NOTHING;
  GET DIAGNOSTICS inserted = ROW_COUNT;
  RETURN locked + inserted = cardinality(wanted);
END`,
  },
  /**
   * What a request held is free. \`charge\`: what it has spent, which the ledger may have had already if it was just read; \`till\`: its
   * windows are read again until then.
   */
  release: {
    head: '(base text, held_slots text, held_keys text[], micros bigint, charge bigint, till bigint, now bigint) RETURNS void',
    body: `
BEGIN
  IF held_slots IS NOT NULL THEN
    UPDATE ${ROWS} SET used = greatest(0, used - 1) WHERE key = base || 's:' || held_slots;
  END IF;
  IF cardinality(held_keys) > 0 THEN
    UPDATE ${ROWS} SET
      used = greatest(0, used - micros),
      spent = spent + charge,
      delta = CASE WHEN loading THEN delta + charge ELSE delta END,
      dirty = CASE WHEN till IS NULL AND (charge = 0 OR reload <= now) THEN dirty ELSE greatest(dirty, coalesce(till, now)) END,
      expires = now + ${IDLE_MS}
    WHERE key IN (SELECT base || 'b:' || name FROM unnest(held_keys) AS name);
  END IF;
END`,
  },
  /** What leases that have ended hold of a limit: the next beat removes them. */
  count_ended: {
    head: '(base text, held_slots text, held_key text, now bigint) RETURNS bigint',
    body: `
BEGIN
  RETURN (SELECT coalesce(sum(CASE WHEN held_slots IS NULL THEN micros ELSE 1 END), 0) FROM ${LEASES}
    WHERE expires <= now AND NOT done AND starts_with(id, base) AND (slots = held_slots OR held_key = ANY (keys)));
END`,
  },
} as const satisfies Record<string, { head: string; body: string }>;

/**
 * Admits a request: a slot, counters and reservations, all or none. `wanted` has the keys in this order. The reply has what is spent and
 * reserved of its windows then.
 */
const TAKE = `
DECLARE${PRELUDE}
  slot_name text := req->>'slots';
  slot_count int := (slot_name IS NOT NULL)::int;
  rate_count int := jsonb_array_length(req->'rates');
  micros bigint := (req->>'micros')::bigint;
  key_count int := CASE WHEN micros IS NULL THEN 0 ELSE jsonb_array_length(req->'keys') END;
  wanted text[] := '{}';
  starts bigint[] := '{}';
  sums bigint[] := '{}';
  row_found record;
  place int := 0;
  number int;
  amount bigint;
  top bigint;
  reply jsonb;
  missing jsonb := '[]';
  worst int;
  worst_spent bigint;
  worst_reserved bigint;
  views jsonb := '[]';
BEGIN${CHECK}
  IF state.ready > now THEN RETURN jsonb_build_array('rebuild', now, state.ready); END IF;
  IF slot_name IS NOT NULL THEN wanted := wanted || (base || 's:' || slot_name); END IF;
  FOR i IN 0 .. rate_count - 1 LOOP wanted := wanted || (base || 'c:' || (req->'rates'->i->>'counter')); END LOOP;
  FOR i IN 0 .. key_count - 1 LOOP wanted := wanted || (base || 'b:' || (req->'keys'->>i)); END LOOP;
  IF NOT req ? 'locked' THEN
${LOCK}
  END IF;
  reply := jsonb_build_array('taken', now);
  FOR row_found IN
    SELECT r.used, r.start, r.spent, r.loaded FROM unnest(wanted) WITH ORDINALITY AS w (key, number)
    JOIN ${ROWS} r ON r.key = w.key ORDER BY w.number
  LOOP
    place := place + 1;
    IF place <= slot_count THEN
      top := (req->>'slot_limit')::bigint;
      IF row_found.used >= top AND row_found.used - count_ended(base, slot_name, NULL, now) >= top THEN
        RETURN jsonb_build_array('no slot', now);
      END IF;
      amount := 1;
    ELSIF place <= slot_count + rate_count THEN
      number := place - slot_count - 1;
      IF row_found.start IS NULL OR now - row_found.start >= ${RATE_MS} THEN
        row_found.start := now;
        row_found.used := 0;
      END IF;
      amount := (req->'rates'->number->>'amount')::bigint;
      IF row_found.used + amount > (req->'rates'->number->>'limit')::bigint THEN
        RETURN jsonb_set(reply, '{0}', '"over rate"') || jsonb_build_array(row_found.start, row_found.used);
      END IF;
      reply := reply || jsonb_build_array(row_found.start, row_found.used + amount);
    ELSE
      number := place - slot_count - rate_count - 1;
      amount := micros;
      top := (req->'limits'->>number)::bigint;
      IF NOT row_found.loaded THEN
        missing := missing || to_jsonb(number);
      ELSIF micros > 0 AND row_found.spent + row_found.used + micros > top THEN
        row_found.used := row_found.used - count_ended(base, NULL, req->'keys'->>number, now);
        -- A budget that is spent comes before one that running requests hold.
        IF row_found.spent + row_found.used + micros > top AND (worst IS NULL
          OR (row_found.spent + micros > top AND worst_spent + micros <= (req->'limits'->>worst)::bigint))
        THEN
          worst := number;
          worst_spent := row_found.spent;
          worst_reserved := row_found.used;
        END IF;
      END IF;
      views := views || jsonb_build_array(row_found.spent, row_found.used + micros);
    END IF;
    starts := starts || row_found.start;
    sums := sums || amount;
  END LOOP;
  IF missing <> '[]' THEN RETURN jsonb_build_array('load', now) || missing; END IF;
  IF worst IS NOT NULL THEN
    RETURN jsonb_set(reply, '{0}', '"short"') || jsonb_build_array(worst, worst_spent, worst_reserved);
  END IF;
  IF slot_count + key_count > 0 THEN
    INSERT INTO ${LEASES} (id, node, slots, micros, keys, expires) VALUES (base || (req->>'member'), req->>'node', slot_name, micros,
      CASE WHEN micros IS NULL THEN '{}' ELSE ARRAY(SELECT jsonb_array_elements_text(req->'keys')) END, now + ${LEASE_MS})
      ON CONFLICT DO NOTHING;
    -- The request has ended, or was admitted without the server, before this call was run.
    IF NOT FOUND THEN RETURN jsonb_build_array('late', now); END IF;
  END IF;
  UPDATE ${ROWS} r SET
    used = w.amount + CASE WHEN r.start IS DISTINCT FROM w.start THEN 0 ELSE r.used END,
    start = w.start,
    expires = now + CASE WHEN w.start IS NULL THEN ${IDLE_MS} ELSE ${RATE_MS * 2} END
    FROM unnest(wanted, sums, starts) AS w (key, amount, start) WHERE r.key = w.key;
  RETURN reply || views;
END`;

/** Admits several requests of a node in one transaction: the rows of all of them are locked first, in order. */
const TAKE_ALL = `
DECLARE
  wanted text[] := ARRAY(
    SELECT (r->>'prefix') || (r->>'epoch') || ':' || name FROM jsonb_array_elements(req) AS r, LATERAL (
      SELECT 's:' || (r->>'slots') WHERE r ? 'slots'
      UNION ALL SELECT 'c:' || (c->>'counter') FROM jsonb_array_elements(r->'rates') AS c
      UNION ALL SELECT 'b:' || k FROM jsonb_array_elements_text(r->'keys') AS k) AS names (name)
  );
  item jsonb;
  replies jsonb := '[]';
BEGIN${limitCall("req->0->>'timeout'")}
  IF NOT lock_rows(wanted) THEN
    RETURN (SELECT jsonb_agg(jsonb_build_array('again', ${NOW})) FROM jsonb_array_elements(req));
  END IF;
  FOR item IN SELECT jsonb_array_elements(req) LOOP
    replies := replies || jsonb_build_array(take(item || '{"locked": true}'));
  END LOOP;
  RETURN replies;
END`;

/** Raises a reservation, if that fits. */
const RAISE = `
DECLARE${PRELUDE}
  wanted text[];
  held record;
  row_found record;
  more bigint;
BEGIN${CHECK}
  wanted := ${listKeys("req->'keys'")};
${LOCK}
  SELECT micros INTO held FROM ${LEASES} WHERE id = base || (req->>'member') AND NOT done FOR UPDATE;
  IF held.micros IS NULL THEN RETURN jsonb_build_array('unknown', now); END IF;
  more := (req->>'micros')::bigint - held.micros;
  IF more <= 0 THEN RETURN jsonb_build_array('taken', now); END IF;
  FOR i IN 1 .. cardinality(wanted) LOOP
    SELECT loaded, spent, used INTO row_found FROM ${ROWS} WHERE key = wanted[i];
    IF NOT row_found.loaded OR row_found.spent + row_found.used + more > (req->'limits'->>(i - 1))::bigint THEN
      RETURN jsonb_build_array('short', now);
    END IF;
  END LOOP;
  UPDATE ${LEASES} SET micros = micros + more WHERE id = base || (req->>'member');
  UPDATE ${ROWS} SET used = used + more, expires = now + ${IDLE_MS} WHERE key = ANY (wanted);
  RETURN jsonb_build_array('taken', now);
END`;

/**
 * Ends requests. Windows are read again when the ledger may have the charge already: of a reservation that is not known, because it was
 * made while the server was away, of an ending that was sent late, and after the ledger was just read.
 */
const END = `
DECLARE${PRELUDE}
  wanted text[];
  ending jsonb;
  correction jsonb;
  held record;
  charge bigint;
BEGIN${CHECK}
  wanted := ARRAY(
    SELECT base || 's:' || (e->>'slots') FROM jsonb_array_elements(req->'endings') AS e WHERE e ? 'slots'
    UNION ALL SELECT base || 'c:' || (c->>'counter') FROM jsonb_array_elements(req->'endings') AS e, jsonb_array_elements(e->'corrections') AS c
    UNION ALL SELECT base || 'b:' || k FROM jsonb_array_elements(req->'endings') AS e, jsonb_array_elements_text(e->'keys') AS k
    UNION ALL SELECT base || 'b:' || k FROM jsonb_array_elements(req->'endings') AS e
      JOIN ${LEASES} l ON l.id = base || (e->>'member'), unnest(l.keys) AS k
  );
${LOCK}
  FOR ending IN SELECT e FROM jsonb_array_elements(req->'endings') AS e ORDER BY e->>'member' COLLATE "C" LOOP
    FOR correction IN SELECT jsonb_array_elements(ending->'corrections') LOOP
      UPDATE ${ROWS} SET
        used = greatest(0, CASE WHEN now - start < ${RATE_MS} THEN used ELSE 0 END + (correction->>'by')::bigint),
        start = CASE WHEN now - start < ${RATE_MS} THEN start ELSE now END,
        expires = now + ${RATE_MS * 2}
      WHERE key = base || 'c:' || (correction->>'counter') AND ((correction->>'by')::bigint > 0
        OR (start = (correction->>'period')::bigint AND now - start < ${RATE_MS}));
    END LOOP;
    charge := (ending->>'charged')::bigint;
    IF charge IS NULL AND NOT ending ? 'slots' THEN CONTINUE; END IF;
    INSERT INTO ${LEASES} (id, keys, expires, done) VALUES (base || (ending->>'member'), '{}', now + ${DONE_MS}, true)
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      IF charge IS NOT NULL THEN
        PERFORM release(base, NULL, ARRAY(SELECT jsonb_array_elements_text(ending->'keys')), 0, charge, now, now);
      END IF;
      CONTINUE;
    END IF;
    SELECT slots, micros, keys, done INTO held FROM ${LEASES} WHERE id = base || (ending->>'member') FOR UPDATE;
    IF NOT held.done THEN
      PERFORM release(base, held.slots, held.keys, coalesce(held.micros, 0), coalesce(charge, 0),
        CASE WHEN ending ? 'late' THEN now END, now);
      UPDATE ${LEASES} SET done = true, expires = now + ${DONE_MS} WHERE id = base || (ending->>'member');
    END IF;
  END LOOP;
  RETURN jsonb_build_array('taken', now);
END`;

/** Keeps what running requests hold, and adds what is missing: after a crash, or of requests that were admitted without the server. */
const RENEW = `
DECLARE${PRELUDE}
  wanted text[];
  lease jsonb;
  held record;
  more bigint;
BEGIN${CHECK}
  wanted := ARRAY(
    WITH changed AS (SELECT e FROM jsonb_array_elements(req->'leases') AS e LEFT JOIN ${LEASES} l ON l.id = base || (e->>'member')
      WHERE l.id IS NULL OR (NOT l.done AND coalesce(l.micros, 0) < (e->>'micros')::bigint))
    SELECT base || 's:' || (e->>'slots') FROM changed WHERE e ? 'slots'
    UNION ALL SELECT base || 'b:' || k FROM changed, jsonb_array_elements_text(e->'keys') AS k WHERE e ? 'keys'
  );
  IF cardinality(wanted) > 0 THEN
${LOCK}
  END IF;
  FOR lease IN SELECT e FROM jsonb_array_elements(req->'leases') AS e ORDER BY e->>'member' COLLATE "C" LOOP
    SELECT micros, done INTO held FROM ${LEASES} WHERE id = base || (lease->>'member') FOR UPDATE;
    IF NOT FOUND THEN
      INSERT INTO ${LEASES} (id, node, slots, micros, keys, expires) VALUES (base || (lease->>'member'), req->>'node', lease->>'slots',
        (lease->>'micros')::bigint, ARRAY(SELECT jsonb_array_elements_text(coalesce(lease->'keys', '[]'))), now + ${LEASE_MS})
        ON CONFLICT DO NOTHING;
      IF NOT FOUND THEN CONTINUE; END IF;
      UPDATE ${ROWS} SET used = used + 1, expires = now + ${IDLE_MS} WHERE key = base || 's:' || (lease->>'slots');
      more := coalesce((lease->>'micros')::bigint, 0);
    ELSIF held.done THEN
      CONTINUE;
    ELSE
      more := greatest(0, coalesce((lease->>'micros')::bigint, 0) - coalesce(held.micros, 0));
      UPDATE ${LEASES} SET expires = now + ${LEASE_MS}, micros = micros + more WHERE id = base || (lease->>'member');
    END IF;
    IF more > 0 THEN
      UPDATE ${ROWS} SET used = used + more, expires = now + ${IDLE_MS}
        WHERE key IN (SELECT base || 'b:' || k FROM jsonb_array_elements_text(lease->'keys') AS k);
    END IF;
  END LOOP;
  RETURN jsonb_build_array('taken', now);
END`;

/**
 * A node takes part in the current epoch, or starts one: when the tables are empty, or of another run of the server, such as one that
 * was restored from a backup. Requests are admitted when all expected nodes have joined, and those that run are reserved again.
 */
const JOIN = `
DECLARE${PRELUDE}
  is_new boolean;
  open_till bigint;
BEGIN${limitCall("req->>'timeout'")}
  INSERT INTO ${STATE} (prefix, epoch, run, ready, cleaned)
    VALUES (req->>'prefix', req->>'epoch', req->>'run', now + ${REBUILD_MS}, now) ON CONFLICT DO NOTHING;
  SELECT epoch, run, ready INTO state FROM ${STATE} WHERE prefix = req->>'prefix' FOR UPDATE;
  IF state.run <> req->>'run' THEN
    UPDATE ${STATE} SET epoch = req->>'epoch', run = req->>'run', ready = now + ${REBUILD_MS} WHERE prefix = req->>'prefix'
      RETURNING epoch, run, ready INTO state;
  END IF;
  INSERT INTO ${NODES} (epoch, node, seen) VALUES (state.epoch, req->>'node', now) ON CONFLICT DO NOTHING;
  is_new := FOUND;
  UPDATE ${NODES} SET seen = now WHERE epoch = state.epoch AND node = req->>'node' AND NOT is_new;
  open_till := state.ready;
  IF is_new AND state.ready > now THEN
    IF (SELECT count(*) FROM ${NODES} WHERE epoch = state.epoch) >= (req->>'nodes')::int THEN open_till := now + ${QUIET_MS};
    ELSE open_till := greatest(state.ready, now + ${QUIET_MS});
    END IF;
    UPDATE ${STATE} SET ready = open_till WHERE prefix = req->>'prefix';
  END IF;
  RETURN jsonb_build_array('taken', now, state.epoch, open_till);
END`;

/** A sign of life. Returns how many nodes are alive, and windows to read from the ledger again. Removes what has expired. */
const BEAT = `
DECLARE${PRELUDE}
  ended text[];
  wanted text[];
  lease record;
  reply jsonb;
BEGIN${CHECK}
  ended := ARRAY(SELECT id FROM ${LEASES} WHERE expires <= now AND NOT done AND starts_with(id, base) LIMIT ${PRUNED});
  IF cardinality(ended) > 0 THEN
    wanted := ARRAY(
      SELECT base || 's:' || slots FROM ${LEASES} WHERE id = ANY (ended) AND slots IS NOT NULL
      UNION ALL SELECT base || 'b:' || k FROM ${LEASES}, unnest(keys) AS k WHERE id = ANY (ended)
    );
${LOCK}
    PERFORM 1 FROM ${LEASES} WHERE id = ANY (ended) ORDER BY id FOR UPDATE;
    FOR lease IN DELETE FROM ${LEASES} WHERE id = ANY (ended) AND expires <= now AND NOT done RETURNING slots, keys, micros LOOP
      PERFORM release(base, lease.slots, lease.keys, coalesce(lease.micros, 0), 0, now + ${CRASH_MS}, now);
    END LOOP;
  END IF;
  INSERT INTO ${NODES} (epoch, node, seen) VALUES (req->>'epoch', req->>'node', now)
    ON CONFLICT (epoch, node) DO UPDATE SET seen = excluded.seen;
  reply := jsonb_build_array('taken', now,
    (SELECT count(*) FROM ${NODES} WHERE epoch = req->>'epoch' AND seen > now - ${ALIVE_MS}));
  UPDATE ${ROWS} SET dirty = NULL WHERE key IN (
    SELECT key FROM ${ROWS} WHERE dirty IS NOT NULL AND NOT loaded AND starts_with(key, base) FOR UPDATE SKIP LOCKED);
  WITH due AS (
    UPDATE ${ROWS} SET reload = now + ${RELOAD_MS} WHERE key IN (SELECT key FROM ${ROWS}
      WHERE dirty IS NOT NULL AND reload <= now AND starts_with(key, base) ORDER BY dirty LIMIT 10 FOR UPDATE SKIP LOCKED)
    RETURNING key)
  SELECT reply || coalesce(jsonb_agg(substr(key, length(base) + 3)), '[]') INTO reply FROM due;
  DELETE FROM ${LEASES} WHERE id IN (SELECT id FROM ${LEASES}
    WHERE expires <= now AND starts_with(id, req->>'prefix') AND (done OR NOT starts_with(id, base)) LIMIT ${CLEANED} FOR UPDATE SKIP LOCKED);
  UPDATE ${STATE} SET cleaned = now WHERE prefix IN (SELECT prefix FROM ${STATE}
    WHERE prefix = req->>'prefix' AND cleaned <= now - ${CLEAN_MS} FOR UPDATE SKIP LOCKED);
  IF FOUND THEN
    DELETE FROM ${ROWS} WHERE key IN (SELECT key FROM ${ROWS} WHERE expires <= now AND starts_with(key, req->>'prefix')
      AND (start IS NOT NULL OR used = 0 OR NOT starts_with(key, base)) LIMIT ${CLEANED} FOR UPDATE SKIP LOCKED);
    DELETE FROM ${NODES} WHERE seen <= now - ${IDLE_MS};
  END IF;
  RETURN reply;
END`;

/** Before windows are read from the ledger: from here on, what is charged is noted in \`delta\`. */
const BEGIN = `
DECLARE${PRELUDE}
  wanted text[];
BEGIN${CHECK}
  wanted := ${listKeys("req->'keys'")};
${LOCK}
  UPDATE ${ROWS} SET delta = CASE WHEN loading THEN delta ELSE 0 END, loading = true, expires = now + ${IDLE_MS}
    WHERE key = ANY (wanted);
  RETURN jsonb_build_array('taken', now);
END`;

/**
 * What the ledger has of windows. What was charged meanwhile is added, though the ledger may have it already: a budget is
 * never too high, and such a window is read again later.
 */
const COMMIT = `
DECLARE${PRELUDE}
  wanted text[];
BEGIN${CHECK}
  wanted := ${listKeys("req->'keys'")};
${LOCK}
  FOR i IN 1 .. cardinality(wanted) LOOP
    UPDATE ${ROWS} SET
      spent = (req->'spent'->>(i - 1))::bigint + delta,
      loaded = true,
      -- What has ended before an epoch began may have been written after its first read.
      dirty = CASE WHEN NOT loaded AND now < state.ready + ${QUIET_MS} THEN greatest(dirty, now + ${RELOAD_MS})
        WHEN delta <> 0 THEN greatest(dirty, now) WHEN dirty <= now THEN NULL ELSE dirty END
    WHERE key = wanted[i] AND loading AND (req ? 'again' OR NOT loaded);
    UPDATE ${ROWS} SET loading = false, delta = 0 WHERE key = wanted[i] AND loading;
  END LOOP;
  RETURN jsonb_build_array('taken', now);
END`;

/** Whether windows are loaded, what they have spent, and what is reserved. */
const READ = `
DECLARE${PRELUDE}
  reply jsonb;
BEGIN${CHECK}
  SELECT jsonb_build_array('taken', now) || coalesce(jsonb_agg(value ORDER BY k.place, part.place), '[]') INTO reply
    FROM jsonb_array_elements_text(req->'keys') WITH ORDINALITY AS k (name, place)
    LEFT JOIN ${ROWS} r ON r.key = base || 'b:' || k.name
    CROSS JOIN LATERAL (VALUES (1, coalesce(r.loaded, false)::int::bigint), (2, coalesce(r.spent, 0)), (3, coalesce(r.used, 0))) AS part (place, value);
  RETURN reply;
END`;

const BODIES = {
  take: TAKE,
  take_all: TAKE_ALL,
  raise: RAISE,
  end: END,
  renew: RENEW,
  join: JOIN,
  beat: BEAT,
  begin: BEGIN,
  commit: COMMIT,
  read: READ,
} as const satisfies Record<Operation | 'take_all', string>;

/**
 * Names have the hash of all texts: nodes of two releases call their own functions on the same tables. Those of older releases stay.
 */
const HASH = createHash('sha256')
  .update(JSON.stringify([HELPERS, BODIES]))
  .digest('hex')
  .slice(0, 10);

/** The name of the function of an operation. */
export const nameFunction = (name: keyof typeof BODIES | keyof typeof HELPERS): string => `limits${FORMAT}_${name}_${HASH}`;

/** Texts call functions by their short names. */
const qualify = (body: string): string =>
  body.replace(/\b(lock_rows|release|count_ended|take)\(/g, (_, name: keyof typeof HELPERS | 'take') => `${nameFunction(name)}(`);

const define = (name: keyof typeof BODIES | keyof typeof HELPERS, head: string, body: string): string =>
  `CREATE OR REPLACE FUNCTION ${nameFunction(name)}${head} LANGUAGE plpgsql AS $function$\n#variable_conflict use_column\n${qualify(body)}\n$function$`;

const listNames = <Name extends string>(table: Record<Name, unknown>): Name[] => Object.keys(table) as Name[]; // tables are constants

/** Creates all functions. */
export const FUNCTIONS: readonly string[] = [
  ...listNames(HELPERS).map((name) => define(name, HELPERS[name].head, HELPERS[name].body)),
  ...listNames(BODIES).map((name) => define(name, '(req jsonb) RETURNS jsonb', BODIES[name])),
];

/** Whether this database has the tables and functions. */
export const IS_PREPARED = `SELECT to_regclass('${LEASES}') IS NOT NULL AND to_regprocedure('${nameFunction('read')}(jsonb)') IS NOT NULL AS prepared`;
