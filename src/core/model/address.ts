export const CONNECTIONS_MAX = 1_000
export const CONNECTIONS_MISTAKE = `must be a whole number from 1 to ${CONNECTIONS_MAX}`

export function isConnections(given: unknown): given is number {
  return Number.isInteger(given) && Number(given) >= 1 && Number(given) <= CONNECTIONS_MAX
}
