import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { cliCommand } from '../src/testing/unstuck-cli.ts'

export type BenchServer = {
  readonly url: string
  /** Processor time that it has used so far. */
  cpuMs(): number
  stop(): Promise<void>
}

/** `unstuck serve`, as a process of its own. */
export async function startBenchServer(db: string): Promise<BenchServer> {
  const { command, env } = cliCommand(['serve', '--port', '0', '--db', db])
  const child = spawn(command[0]!, command.slice(1), { cwd: tmpdir(), env })
  const ended = once(child, 'exit')
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const found = /http:\/\/127\.0\.0\.1:\d+/.exec(said)
      if (found) resolve(found[0])
    })
    child.once('exit', () => reject(new Error(`The server did not start: ${said}`)))
  })
  return {
    url,
    cpuMs: () => cpuMs(child.pid!),
    stop: async () => {
      child.kill('SIGTERM')
      await ended
    },
  }
}

const TICK_MS = 10

function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

export type Tabs = { events(): number; close(): void }

/** As many open dashboards, as the server sees them: a stream each. */
export async function openTabs(url: string, count: number): Promise<Tabs> {
  let events = 0
  const streams = await Promise.all(
    Array.from({ length: count }, async () => {
      const request = get(`${url}/api/events?topics=overview,trail`, { agent: false })
      const [stream] = (await once(request, 'response')) as [IncomingMessage]
      if (stream.statusCode !== 200) throw new Error(`/api/events answered ${stream.statusCode}`)
      stream.setEncoding('utf8').on('data', (text: string) => {
        events += text.split('\nevent:').length - 1 + (text.startsWith('event:') ? 1 : 0)
      })
      stream.on('error', () => {})
      return request
    }),
  )
  return { events: () => events, close: () => streams.forEach((stream) => stream.destroy()) }
}
