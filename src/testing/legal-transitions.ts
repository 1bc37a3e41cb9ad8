import { RUN_TRANSITIONS, TARGET_STARTS, TARGET_TRANSITIONS } from './transitions.ts'

/**
 * Triggers that hold a test database to the published tables of moves, whatever the code above does: a change of
 * status that is not in them fails its transaction, as does an epoch or a sequence that goes back, or a page without
 * the raised epoch of a rewind.
 */

type Transitions = Readonly<Record<string, readonly string[]>>

export const SQLITE_TRANSITION_CHECKS = [
  sqliteTrigger('target', TARGET_TRANSITIONS, TARGET_STARTS),
  sqliteTrigger('run', RUN_TRANSITIONS, ['queued']),
  /* sql */ `
  CREATE TRIGGER target_never_back BEFORE UPDATE ON target
    WHEN NEW.epoch < OLD.epoch OR NEW.checkpoint_seq < OLD.checkpoint_seq
      OR (NEW.page < OLD.page AND NOT (NEW.epoch > OLD.epoch AND NEW.status = 'planned'))
    BEGIN SELECT RAISE(ABORT, 'illegal move: a target went back'); END;
`,
].join('\n')

function sqliteTrigger(table: string, transitions: Transitions, starts: readonly string[]): string {
  return /* sql */ `
  CREATE TRIGGER ${table}_legal_moves BEFORE UPDATE ON ${table}
    WHEN NEW.status <> OLD.status AND NOT (${legalPairs(transitions)})
    BEGIN SELECT RAISE(ABORT, 'illegal move of a ${table}''s status'); END;
  CREATE TRIGGER ${table}_legal_start BEFORE INSERT ON ${table} WHEN NEW.status NOT IN (${starts.map(quote).join(', ')})
    BEGIN SELECT RAISE(ABORT, 'a ${table} starts as ${starts.join(' or ')}'); END;
`
}

export const POSTGRES_TRANSITION_CHECKS = [
  postgresTrigger('target', TARGET_TRANSITIONS, TARGET_STARTS),
  postgresTrigger('run', RUN_TRANSITIONS, ['queued']),
  /* sql */ `
  CREATE FUNCTION unstuck.target_never_back() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF NEW.epoch < OLD.epoch OR NEW.checkpoint_seq < OLD.checkpoint_seq
       OR (NEW.page < OLD.page AND NOT (NEW.epoch > OLD.epoch AND NEW.status = 'planned')) THEN
      RAISE EXCEPTION 'illegal move: a target went back';
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER target_never_back BEFORE UPDATE ON unstuck.target
    FOR EACH ROW EXECUTE FUNCTION unstuck.target_never_back();
`,
].join('\n')

function postgresTrigger(
  table: string,
  transitions: Transitions,
  starts: readonly string[],
): string {
  return /* sql */ `
  CREATE FUNCTION unstuck.${table}_legal_moves() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF TG_OP = 'INSERT' THEN
      IF NEW.status NOT IN (${starts.map(quote).join(', ')}) THEN
        RAISE EXCEPTION 'a ${table} starts as ${starts.join(' or ')}, not %', NEW.status;
      END IF;
    ELSIF NEW.status <> OLD.status AND NOT (${legalPairs(transitions)}) THEN
      RAISE EXCEPTION 'illegal move of a ${table}''s status: % to %', OLD.status, NEW.status;
    END IF;
    RETURN NEW;
  END $$;
  CREATE TRIGGER ${table}_legal_moves BEFORE INSERT OR UPDATE ON unstuck.${table}
    FOR EACH ROW EXECUTE FUNCTION unstuck.${table}_legal_moves();
`
}

function legalPairs(transitions: Transitions): string {
  return Object.entries(transitions)
    .filter(([, to]) => to.length > 0)
    .map(([from, to]) => `OLD.status = '${from}' AND NEW.status IN (${to.map(quote).join(', ')})`)
    .join(' OR ')
}

function quote(status: string): string {
  return `'${status}'`
}
