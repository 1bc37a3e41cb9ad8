/** Sessions of the dashboard. */
export const httpSessions = /* sql */ `
  CREATE TABLE unstuck.http_session (
    id         text COLLATE "C" PRIMARY KEY, -- SHA-256 of what the browser holds, in hex
    token      text NOT NULL,                -- the name of the token that it logged in with
    token_mark text NOT NULL,                -- binds it to that very token
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
  );
`
