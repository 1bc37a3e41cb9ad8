/**
 * The function that saves a page in a transaction of the user's own connection: `one-page.ts`, for callers that are not
 * trusted with more than the one claim they name. Source and counters come from the run, not from the caller. Every plan is
 * the generic one: with the status as a constant the planner would read the index of all claims.
 *
 * SQLSTATEs: UN001 the claim is lost, UN002 the page is not the next one, UN003 called in the wrong place, 22023 a bad page.
 */
export const checkpointFunction = /* sql */ `
  CREATE FUNCTION unstuck.checkpoint(page json) RETURNS integer
  LANGUAGE plpgsql
  SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  AS $function$
  DECLARE
    held    CONSTANT text := 'in_progress';
    given   record;
    saved   record;
    wrong   text;
    label   text;
    added   integer;
    updated integer;
    slot    text;
  BEGIN
    IF pg_current_xact_id_if_assigned() IS NOT NULL THEN
      RAISE EXCEPTION 'unstuck.checkpoint() is not the first write of its transaction. Nothing was saved.'
        USING ERRCODE = 'UN003', HINT = 'Call it before every statement that writes or locks, once per transaction.';
    END IF;

    IF json_typeof(checkpoint.page) IS DISTINCT FROM 'object' THEN
      RAISE EXCEPTION 'unstuck.checkpoint() was given no page: the argument is not a JSON object.' USING ERRCODE = '22023';
    END IF;
    SELECT p.* INTO given FROM json_to_record(checkpoint.page) AS p (
      target uuid, epoch integer, claim_id uuid, expected_seq integer, page integer, page_target integer, next_url text,
      last_item_id text, cursor jsonb, skipped integer, hash text, done boolean, items json);
    SELECT string_agg(f.name, ', ') INTO wrong FROM (VALUES
      ('target', given.target IS NOT NULL), ('epoch', given.epoch IS NOT NULL), ('claim_id', given.claim_id IS NOT NULL),
      ('expected_seq', given.expected_seq >= 0), ('page', given.page >= 1), ('skipped', given.skipped >= 0),
      ('hash', given.hash <> ''), ('done', given.done IS NOT NULL), ('items', json_typeof(given.items) = 'array'),
      ('page_target', given.page_target IS NULL OR given.page_target >= 0),
      ('cursor', given.cursor IS NULL OR jsonb_typeof(given.cursor) = 'array')
    ) AS f (name, is_right) WHERE f.is_right IS NOT TRUE;
    IF wrong IS NOT NULL THEN
      RAISE EXCEPTION 'unstuck.checkpoint() was given a page with missing or invalid values: %.', wrong USING ERRCODE = '22023';
    END IF;

    -- Until the end of this transaction: what is acknowledged survives a power loss, and a program that hangs does not
    -- hold the row for ever. Stricter settings of the session stay.
    PERFORM set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';
    PERFORM set_config(s.name, s.value, true)
       FROM (VALUES ('lock_timeout', '5s'), ('idle_in_transaction_session_timeout', '60s')) AS s (name, value)
      WHERE current_setting(s.name)::interval = '0' OR current_setting(s.name)::interval > s.value::interval;

    UPDATE unstuck.target t
       SET checkpoint_seq = t.checkpoint_seq + 1, page = given.page, next_url = given.next_url,
           checkpoint_hash = given.hash,
           page_target  = coalesce(given.page_target, t.page_target),
           last_item_id = coalesce(given.last_item_id, t.last_item_id),
           cursor       = CASE WHEN given.cursor IS NULL THEN t.cursor ELSE given.cursor -> 0 END,
           status       = CASE WHEN given.done THEN 'done' ELSE t.status END,
           finished_at  = CASE WHEN given.done THEN clock_timestamp() END,
           last_activity_at = clock_timestamp(), crashes = 0, crashes_alone = 0,
           crashes_since_epoch = t.epoch, errors = 0
     WHERE t.id = given.target AND t.epoch = given.epoch AND t.claim_id = given.claim_id
       AND t.checkpoint_seq = given.expected_seq AND t.page < given.page AND t.status = held
    RETURNING t.run_id, t.group_name, t.checkpoint_seq, t.xmin <> pg_current_xact_id()::xid AS in_savepoint
         INTO saved;

    IF saved.checkpoint_seq IS NULL THEN
      SELECT t.page, t.checkpoint_seq = given.expected_seq + 1 AND t.checkpoint_hash = given.hash AS is_in INTO saved
        FROM unstuck.target t
       WHERE t.id = given.target AND t.epoch = given.epoch AND t.claim_id = given.claim_id
         AND (t.status = held OR t.checkpoint_seq = given.expected_seq + 1 AND t.checkpoint_hash = given.hash);
      IF saved.is_in THEN
        RAISE EXCEPTION 'Page % of target % is saved already. Nothing was written again.', given.page, given.target
          USING ERRCODE = 'UN002', HINT = 'An earlier COMMIT of this page succeeded: continue with the next page.';
      ELSIF saved.page IS NOT NULL THEN
        RAISE EXCEPTION 'Page % of target % does not follow its last page, %. Nothing was saved.',
          given.page, given.target, saved.page
          USING ERRCODE = 'UN002', HINT = 'Ask for the statement of the next page again.';
      END IF;
      RAISE EXCEPTION 'Target % is no longer claimed by this worker. Nothing was saved.', given.target
        USING ERRCODE = 'UN001', HINT = 'Drop it: its new owner continues from the last saved page.';
    END IF;

    -- After ROLLBACK TO the page would be gone, and what follows could still be committed.
    IF saved.in_savepoint THEN
      RAISE EXCEPTION 'unstuck.checkpoint() was called after a SAVEPOINT. Nothing was saved.'
        USING ERRCODE = 'UN003', HINT = 'Call it in the transaction itself, or set no savepoint for each statement.';
    END IF;

    label := given.claim_id || '/' || saved.checkpoint_seq;
    WITH offered AS (
      SELECT * FROM ROWS FROM (
        json_to_recordset(given.items) AS (key text COLLATE "C", key_version int, url text, data jsonb)
      ) WITH ORDINALITY AS i (key, key_version, url, data, nth)
    ),
    upserted AS (
      INSERT INTO unstuck.item (source, key, key_version, url, data, changed_in, run_id, group_name)
      SELECT DISTINCT ON (o.key)
             r.source, o.key, o.key_version, o.url, coalesce(o.data, 'null'), label, r.id, saved.group_name
        FROM unstuck.run r CROSS JOIN offered o
       WHERE r.id = saved.run_id
       ORDER BY o.key, o.nth DESC
      ON CONFLICT (source, key) DO UPDATE SET
        version      = item.version + (item.data <> excluded.data)::int,
        changed_in   = CASE WHEN item.data <> excluded.data THEN excluded.changed_in ELSE item.changed_in END,
        changed_at   = CASE WHEN item.data <> excluded.data THEN excluded.changed_at ELSE item.changed_at END,
        data         = CASE WHEN item.data <> excluded.data THEN excluded.data ELSE item.data END,
        url          = excluded.url,
        run_id       = excluded.run_id,
        group_name   = excluded.group_name,
        last_seen_at = excluded.last_seen_at
      RETURNING CASE WHEN changed_in = label THEN version END AS version
    )
    SELECT count(*) FILTER (WHERE u.version = 1), count(*) FILTER (WHERE u.version > 1) INTO added, updated FROM upserted u;

    -- A row of the counters that no open transaction has, so that two never wait for each other. They stay with the
    -- run: there are as many as transactions were open at once.
    SELECT c.writer INTO slot FROM unstuck.run_counters c
     WHERE c.run_id = saved.run_id AND c.group_name = saved.group_name AND c.writer >= 'tx/' AND c.writer < 'tx0'
     ORDER BY c.writer LIMIT 1 FOR UPDATE SKIP LOCKED;
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, in_progress, done, pages, skipped,
                               items_new, items_updated, items_unchanged)
    VALUES (saved.run_id, saved.group_name, coalesce(slot, 'tx/' || pg_current_xact_id()), -given.done::int, given.done::int,
            1, given.skipped, added, updated, json_array_length(given.items) - added - updated)
    ON CONFLICT (run_id, group_name, writer) DO UPDATE SET
      planned          = run_counters.planned         + excluded.planned,
      in_progress      = run_counters.in_progress     + excluded.in_progress,
      done             = run_counters.done            + excluded.done,
      failed           = run_counters.failed          + excluded.failed,
      stuck            = run_counters.stuck           + excluded.stuck,
      parked           = run_counters.parked          + excluded.parked,
      pages            = run_counters.pages           + excluded.pages,
      items_new        = run_counters.items_new       + excluded.items_new,
      items_updated    = run_counters.items_updated   + excluded.items_updated,
      items_unchanged  = run_counters.items_unchanged + excluded.items_unchanged,
      skipped          = run_counters.skipped         + excluded.skipped,
      errors           = run_counters.errors          + excluded.errors,
      refused          = run_counters.refused         + excluded.refused,
      last_activity_at = greatest(run_counters.last_activity_at, excluded.last_activity_at);

    RETURN saved.checkpoint_seq;
  END
  $function$;

  REVOKE EXECUTE ON FUNCTION unstuck.checkpoint(json) FROM PUBLIC;
`
