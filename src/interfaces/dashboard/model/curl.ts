import { shellWord } from '../../../core/model/shell-command.ts'

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
      shellWord('Content-Type: application/json'),
      '-d',
      shellWord(JSON.stringify(body ?? {})),
    )
  }
  parts.push(shellWord(origin + path))
  return parts.join(' ')
}
