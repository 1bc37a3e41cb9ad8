import { once } from 'node:events'
import { chmodSync, lstatSync, mkdirSync, rmSync, statSync } from 'node:fs'
import type { Server } from 'node:http'
import { connect } from 'node:net'
import { dirname, resolve } from 'node:path'
import { messageOf, UsageError } from '../../model/errors.ts'

/** The shortest limit among the systems, with its closing zero: macOS. */
const SOCKET_PATH_MAX = 103

/** On a free port that only this machine reaches. */
export async function listenOnPort(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
}

/** On a Unix socket that only this user reaches. One that a killed process left behind is replaced. */
export async function listenOnSocket(server: Server, socket: string): Promise<void> {
  const path = resolve(socket)
  if (Buffer.byteLength(path) > SOCKET_PATH_MAX) {
    throw new UsageError(
      `The path of the socket ${path} is longer than ${SOCKET_PATH_MAX} bytes, which no system takes. Name a shorter one.`,
    )
  }
  makePrivateFolder(dirname(path))
  await removeLeftover(path)
  server.listen(path)
  await once(server, 'listening')
  // Until here the folder has kept others out.
  chmodSync(path, 0o600)
}

function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UsageError(`The folder of the socket cannot be made: ${messageOf(error)}.`, {
      cause: error,
    })
  }
  const { mode, uid } = statSync(folder)
  if ((mode & 0o077) === 0 && uid === process.getuid?.()) return
  throw new UsageError(
    `Others can enter ${folder}, so a socket in it would not be private. ` +
      'Name one in a folder of its own, or close this one with `chmod 700`.',
  )
}

async function removeLeftover(path: string): Promise<void> {
  const there = lstatSync(path, { throwIfNoEntry: false })
  if (!there) return
  if (!there.isSocket()) {
    throw new UsageError(`${path} is there and is not a socket. Name another path for the socket.`)
  }
  if (await isAnswered(path)) {
    throw new UsageError(`Another process listens on ${path}. Name another path for the socket.`)
  }
  rmSync(path)
}

async function isAnswered(path: string): Promise<boolean> {
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
