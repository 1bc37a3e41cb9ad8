-- Four roles for Unstuck on PostgreSQL, each with no more rights than it needs:
--
--   unstuck_migrate   owns the schema and changes it            unstuck migrate
--   unstuck_worker    works: claims, saves, recovers, cleans    unstuck work, run, serve, and all other commands
--   unstuck_viewer    only reads                                unstuck serve --read-only, your own reports
--                     (what is refused to those who ask for a change is then not written down either)
--   unstuck_program   own program: saves a page of a target that it holds, together with rows of its own tables, by the one
--                     function unstuck.checkpoint (worker-transactions.md). It reads and changes nothing else of Unstuck
--
-- What was done (audit, operation) can be added to and read by a worker, but neither changed nor deleted.
--
-- How to use it, as a superuser or as the owner of the database:
--
--   1. unstuck migrate --db postgres://…                        makes the schema `unstuck` and its tables
--   2. psql -v ON_ERROR_STOP=1 -f postgres-roles.sql            this file
--   3. Logins, with passwords of your own:
--
--        CREATE ROLE unstuck_deploy    LOGIN PASSWORD '…' IN ROLE unstuck_migrate;
--        CREATE ROLE unstuck_crawler   LOGIN PASSWORD '…' IN ROLE unstuck_worker;
--        CREATE ROLE unstuck_dashboard LOGIN PASSWORD '…' IN ROLE unstuck_viewer;
--
--      and for a program with tables and a login of its own: GRANT unstuck_program TO that_login;
--
-- After an upgrade: `unstuck migrate` as unstuck_deploy, then this file again, for tables and functions that are new. Both can be run as often
-- as you like, also while workers are at work.
--
-- Everything lies in the schema `unstuck`, and every statement names it: search_path does not matter.

BEGIN;

DO $$
DECLARE
  role_name text;
BEGIN
  FOREACH role_name IN ARRAY ARRAY['unstuck_migrate', 'unstuck_worker', 'unstuck_viewer', 'unstuck_program'] LOOP
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role_name);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      NULL; -- it is there already
    END;
  END LOOP;
END $$;

-- The schema, its tables and its views belong to unstuck_migrate. CREATE on the database is asked for by CREATE SCHEMA IF NOT EXISTS.
DO $$
DECLARE
  table_name text;
  function_name text;
BEGIN
  EXECUTE format('GRANT CREATE ON DATABASE %I TO unstuck_migrate', current_database());
  ALTER SCHEMA unstuck OWNER TO unstuck_migrate;
  FOR table_name IN SELECT tablename FROM pg_tables WHERE schemaname = 'unstuck'
                    UNION ALL SELECT viewname FROM pg_views WHERE schemaname = 'unstuck' LOOP
    EXECUTE format('ALTER TABLE unstuck.%I OWNER TO unstuck_migrate', table_name);
  END LOOP;
  FOR function_name IN SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'unstuck'::regnamespace LOOP
    EXECUTE format('ALTER ROUTINE %s OWNER TO unstuck_migrate', function_name);
  END LOOP;
END $$;

REVOKE ALL ON SCHEMA unstuck FROM PUBLIC, unstuck_worker, unstuck_viewer, unstuck_program;
REVOKE ALL ON ALL TABLES IN SCHEMA unstuck FROM PUBLIC, unstuck_worker, unstuck_viewer, unstuck_program;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA unstuck FROM PUBLIC, unstuck_worker, unstuck_viewer, unstuck_program;
GRANT USAGE ON SCHEMA unstuck TO unstuck_worker, unstuck_viewer, unstuck_program;

-- Views are tables here. They read with the rights of their owner, so a login for monitoring alone needs no more than USAGE
-- on the schema and SELECT on the views that it reads (docs/reference/sql-views.md).
GRANT SELECT ON ALL TABLES IN SCHEMA unstuck TO unstuck_worker, unstuck_viewer;

GRANT INSERT, UPDATE, DELETE ON unstuck.run, unstuck.target, unstuck.item, unstuck.run_counters, unstuck.lost_claim TO unstuck_worker;
GRANT INSERT, UPDATE, DELETE ON unstuck.source, unstuck.session TO unstuck_worker;
GRANT INSERT, UPDATE, DELETE ON unstuck.crawlee_storage, unstuck.crawlee_dataset_entry, unstuck.crawlee_record TO unstuck_worker;
-- Rows of workers that have ended and alerts that are resolved are removed after a time.
GRANT INSERT, UPDATE, DELETE ON unstuck.worker, unstuck.alert, unstuck.alert_delivery TO unstuck_worker;
GRANT INSERT, UPDATE ON unstuck.leader, unstuck.source_lock, unstuck.execution TO unstuck_worker;
GRANT INSERT, UPDATE ON unstuck.adopted_row TO unstuck_worker;
GRANT INSERT, DELETE ON unstuck.sample, unstuck.adopted_intent, unstuck.http_session TO unstuck_worker;
-- Append-only: no UPDATE, no DELETE, no TRUNCATE.
GRANT INSERT ON unstuck.audit, unstuck.operation TO unstuck_worker;
-- Own program. The function runs with the rights of unstuck_migrate and saves a page of a claim whose id the caller knows.
GRANT EXECUTE ON FUNCTION unstuck.checkpoint(json) TO unstuck_program, unstuck_worker;

COMMIT;
