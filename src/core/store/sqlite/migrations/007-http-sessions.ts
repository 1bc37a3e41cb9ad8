/** Sessions of the dashboard. */
export const httpSessions = /* sql */ `
  CREATE TABLE http_session (
    id         TEXT PRIMARY KEY,            -- SHA-256 of what the browser holds, in hex
    token      TEXT NOT NULL,               -- the name of the token that it logged in with
    token_mark TEXT NOT NULL,               -- binds it to that very token
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`
