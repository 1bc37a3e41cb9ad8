import type { RunHandle } from '../../core/worker/run-handle.ts'

/** Opens a run to its command; implemented by the HTTP API. */
export interface Endpoint {
  openSession(handle: RunHandle, hooks: RunHooks): EndpointSession
}

export type RunEnd = 'finish' | { readonly error: string; readonly retry: boolean }

/** The callbacks of a run's owner. */
export type RunHooks = {
  /** Called for every call with a valid token. */
  onCall(): void
  /** Returns true if the command should stop. */
  isStopping(): boolean
  /** Called when the command has ended its run, and this is stored. */
  onEnd(end: RunEnd): void
}

/** How a command reaches the API of its run. */
export type EndpointSession = {
  /** The base address, UNSTUCK_URL. */
  readonly url: string
  /** Valid for this run only, UNSTUCK_TOKEN. */
  readonly token: string
  /** The Unix socket to connect to instead of the URL's host. */
  readonly socket?: string
  /** Refuses calls from now on. */
  close(): void
}
