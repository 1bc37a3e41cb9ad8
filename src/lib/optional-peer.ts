import { UsageError } from '../core/model/errors.ts'

/** An optional peer dependency is not installed. The message has the command that installs it. */
export class MissingPeerError extends UsageError {}

/** Loads an optional peer dependency when it is first needed. */
export async function loadPeer<T>(
  name: string,
  neededFor: string,
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes(`'${name}'`)) throw error
    throw new MissingPeerError(
      `${neededFor} needs the package ${name}, which is not installed: npm install ${name}`,
      { cause: error },
    )
  }
}
