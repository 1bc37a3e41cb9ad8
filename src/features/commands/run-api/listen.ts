import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { messageOf, UsageError } from '../../../core/model/errors.ts'
import { bootId } from '../../../core/host/identity.ts'
import { assertTrusted } from '../../../core/host/trusted-path.ts'

/** The limit of macOS, which is the smallest, without the terminating zero. */
const SOCKET_PATH_MAX = 103

/** Listens on a free port of the loopback interface. */
export async function listenOnPort(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}

export type PrivateSocket = {
  readonly path: string
  /** Removes the folder that was made for the socket. Called after the server has closed, which removes the socket. */
  cleanUp(): void
}

/**
 * Listens on a new Unix socket in this folder, private to this user. Removes sockets of killed processes. If the path
 * would be too long, it uses a new folder in the temporary folder.
 */
export async function listenOnSocket(server: Server, folder: string): Promise<PrivateSocket> {
  const path = join(resolve(folder), newSocketName())
  if (Buffer.byteLength(path) > SOCKET_PATH_MAX) return listenInTempFolder(server, path)
  makePrivateFolder(resolve(folder))
  await removeStaleSockets(resolve(folder))
  await listenOnPath(server, path)
  return { path, cleanUp: () => {} }
}

async function listenInTempFolder(server: Server, wanted: string): Promise<PrivateSocket> {
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-api-'))
  const cleanUp = (): void => rmSync(folder, { recursive: true, force: true })
  try {
    assertTrusted(folder, 'folder of a socket')
    const path = join(folder, newSocketName())
    if (Buffer.byteLength(path) > SOCKET_PATH_MAX) {
      throw new UsageError(
        `A Unix socket's path has at most ${SOCKET_PATH_MAX} bytes; ${wanted} is longer, and so is ${path}. ` +
          'Set TMPDIR to a folder with a shorter path, or leave out --socket.',
      )
    }
    await listenOnPath(server, path)
    return { path, cleanUp }
  } catch (error) {
    cleanUp()
    throw error
  }
}

async function listenOnPath(server: Server, path: string): Promise<void> {
  server.listen(path)
  await once(server, 'listening')
  // Until here the folder's mode has kept other users out.
  chmodSync(path, 0o600)
}

/**
 * Containers share process ids, so the name is random. It begins with the boot id: a socket of another kernel on a shared
 * disk cannot be probed for a listener.
 */
function newSocketName(): string {
  return `${bootPrefix()}-${randomBytes(8).toString('hex')}.sock`
}

function bootPrefix(): string {
  return bootId()?.slice(0, 8) ?? 'local'
}

function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UsageError(
      `The folder of the socket cannot be made: ${messageOf(error)}. Make room for it, or leave out --socket.`,
      { cause: error },
    )
  }
  assertTrusted(folder, 'folder of a socket', { within: dirname(folder) })
  if ((statSync(folder).mode & 0o077) === 0) return
  throw new UsageError(
    `Others can enter ${folder}, so a socket in it would not be private. ` +
      `Close it with \`chmod 700 ${folder}\`, or leave out --socket.`,
  )
}

/** A socket looks abandoned for a moment between its creation and its first listen. */
const NEW_SOCKET_MS = 1_000

async function removeStaleSockets(folder: string): Promise<void> {
  const sockets = readdirSync(folder).filter((name) =>
    new RegExp(`^${bootPrefix()}-[0-9a-f]{16}\\.sock$`).test(name),
  )
  for (const path of sockets.map((name) => join(folder, name))) {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    if (!stats?.isSocket() || Date.now() - stats.mtimeMs < NEW_SOCKET_MS) continue
    if (!(await isListening(path))) rmSync(path, { force: true })
  }
}

async function isListening(path: string): Promise<boolean> {
  const probe = connect(path)
  try {
    await once(probe, 'connect')
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return code !== 'ECONNREFUSED' && code !== 'ENOENT'
  } finally {
    probe.destroy()
  }
}
