/** What a caller of the HTTP API may do. Each role includes those before it. `admin` also does what cannot be undone. */
export const ROLES = ['viewer', 'operator', 'admin'] as const
/** What a user of the dashboard and the API may do. */
export type Role = (typeof ROLES)[number]
