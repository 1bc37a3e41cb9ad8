import { statfsSync } from 'node:fs'

/** File systems that live on another machine: their locks do not reliably end with the process that held them. */
const NETWORK: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xff534d42: 'CIFS',
  0xfe534d42: 'SMB2',
  0x01021997: '9P',
  0x5346414f: 'AFS',
  0x73757245: 'Coda',
  0x00c36400: 'Ceph',
}

/** The network file system a folder lies on, or null for a local one. */
export function networkFileSystem(folder: string, typeOf = statfsType): string | null {
  return NETWORK[typeOf(folder)] ?? null
}

function statfsType(folder: string): number {
  // Only Linux reports the type in a known form; elsewhere nothing is refused.
  return process.platform === 'linux' ? statfsSync(folder).type >>> 0 : 0
}
