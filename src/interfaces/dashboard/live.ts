import { useEffect, useRef } from 'preact/hooks'
import { setClock } from './clock.ts'
import { observable, type Observable, useObserved } from './observable.ts'
import { apiUrl } from './router.ts'
import { get } from './api.ts'

/** What the stream can tell about. */
type Topic = 'overview' | 'workers' | 'trail' | `run:${string}` | `log:${string}`

export type Connection = {
  readonly state: 'connecting' | 'live' | 'lost' | 'paused'
  /** When it came to that, by the browser's clock. */
  readonly since: number
  /** The database does not answer, though the server does. */
  readonly storeError: { readonly since: string; readonly message: string } | null
  /** When something last came, by the browser's clock; null before the first. */
  readonly lastEventAt: number | null
}

const KINDS = ['overview', 'run', 'workers', 'log', 'trail'] as const
const RETRY_MS = [1_000, 2_000, 5_000, 10_000]

const connection = observable<Connection>({
  state: 'connecting',
  since: Date.now(),
  storeError: null,
  lastEventAt: null,
})
/** The last of each topic: a page that is opened again has something to show at once. */
const latest = new Map<Topic, Observable<unknown>>()
const subscriptions = new Map<Topic, Set<(data: unknown) => void>>()
let stream: EventSource | null = null
let openTopics = ''
let failures = 0
let retry: ReturnType<typeof setTimeout> | undefined
let isChanging = false

/** The newest value of a topic, and undefined until it has come. Null asks for nothing. */
export function useLive<T>(topic: Topic | null): T | undefined {
  useLiveEvents<T>(topic, ignore)
  return useObserved(topic ? latestOf(topic) : NOTHING) as T | undefined
}

/** Calls back with each event of a topic. */
export function useLiveEvents<T>(topic: Topic | null, onEvent: (data: T) => void): void {
  const current = useRef(onEvent)
  current.current = onEvent
  useEffect(() => {
    if (!topic) return
    const listener = (data: unknown) => current.current(data as T)
    const listeners = subscriptions.get(topic) ?? new Set()
    subscriptions.set(topic, listeners.add(listener))
    scheduleConnect()
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) subscriptions.delete(topic)
      scheduleConnect()
    }
  }, [topic])
}

export function useConnection(): Connection {
  return useObserved(connection)
}

/** Stops listening until it is called again with false; what is shown stays. */
export function pause(isPaused: boolean): void {
  setState(isPaused ? 'paused' : 'connecting')
  scheduleConnect()
}

/** Closes the stream while the tab is hidden. Called once, at the start. */
export function startLive(): void {
  document.addEventListener('visibilitychange', scheduleConnect)
}

const NOTHING = observable<unknown>(undefined)
const ignore = () => {}

function latestOf(topic: Topic): Observable<unknown> {
  const known = latest.get(topic) ?? observable<unknown>(undefined)
  latest.set(topic, known)
  return known
}

function setState(state: Connection['state']): void {
  const now = connection.get()
  if (now.state !== state) connection.set({ ...now, state, since: Date.now() })
}

/** A page is left and the next one opened in one breath: the stream changes once. */
function scheduleConnect(): void {
  if (isChanging) return
  isChanging = true
  queueMicrotask(() => {
    isChanging = false
    connect()
  })
}

function connect(): void {
  const isQuiet = connection.get().state === 'paused' || document.hidden || subscriptions.size === 0
  const topics = isQuiet ? '' : [...subscriptions.keys()].sort().join(',')
  if (topics === openTopics && (stream !== null || topics === '')) return
  clearTimeout(retry)
  stream?.close()
  stream = null
  openTopics = topics
  if (topics === '') return
  if (connection.get().state !== 'live') setState('connecting')
  open(topics)
}

function open(topics: string): void {
  const source = new EventSource(apiUrl(`/api/events?topics=${encodeURIComponent(topics)}`))
  stream = source
  source.addEventListener('open', () => {
    failures = 0
    setState('live')
    // If the database is still unreachable, the server sends that first.
    connection.set({ ...connection.get(), storeError: null })
  })
  source.addEventListener('error', () => onLost(source))
  for (const kind of KINDS) {
    source.addEventListener(kind, (event: MessageEvent<string>) => onEvent(kind, event.data))
  }
  source.addEventListener('trouble', (event: MessageEvent<string>) => {
    const storeError = JSON.parse(event.data) as Connection['storeError']
    connection.set({ ...connection.get(), storeError })
  })
  source.addEventListener('back', () => connection.set({ ...connection.get(), storeError: null }))
}

/** The browser tries again by itself after a cut line, but not after an answer it did not like. */
function onLost(source: EventSource): void {
  if (source !== stream) return
  setState('lost')
  if (source.readyState !== EventSource.CLOSED) return
  stream = null
  const wait = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]
  retry = setTimeout(() => {
    // A stream cannot say that one has to log in first; this call can.
    get('/api/session').then(scheduleConnect, scheduleConnect)
  }, wait)
}

function onEvent(kind: (typeof KINDS)[number], text: string): void {
  const data: unknown = JSON.parse(text)
  const { now } = data as { now?: string }
  if (now !== undefined) setClock(now)
  connection.set({ ...connection.get(), lastEventAt: Date.now() })
  setState('live')
  for (const [topic, listeners] of subscriptions) {
    if (topic !== kind && !topic.startsWith(`${kind}:`)) continue
    latestOf(topic).set(data)
    for (const tell of listeners) tell(data)
  }
}
