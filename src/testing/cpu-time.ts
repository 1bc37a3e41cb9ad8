import process from 'node:process'

/** Returns the CPU time in milliseconds that work takes. Unlike its duration, it does not grow on a busy machine. */
export function cpuMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000
}
