/** A call as the dashboard makes it. `path` is absolute on the server, base path and all. */
export type ApiCall = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: unknown
}

/** The same call for a shell. The token comes from the environment: it is never in the text. */
export function curlOf({ method, path, body }: ApiCall, origin: string): string {
  const parts = ['curl', '-sS']
  if (method !== 'GET') parts.push('-X', method)
  parts.push('-H', '"Authorization: Bearer $UNSTUCK_TOKEN"')
  if (method !== 'GET') {
    parts.push(
      '-H',
      quoted('Content-Type: application/json'),
      '-d',
      quoted(JSON.stringify(body ?? {})),
    )
  }
  parts.push(quoted(origin + path))
  return parts.join(' ')
}

/** For a POSIX shell: nothing within single quotes means anything but the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
