/** How the sources of Crawlee's queues begin. Their targets are requests, which are kept in the cursor. */
export const CRAWLEE = 'crawlee/'

export function isCrawlee({ source }: { readonly source: string }): boolean {
  return source.startsWith(CRAWLEE)
}
