import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import chromium, { inflate } from '@sparticuz/chromium'

/** A process of its own: unpacks the browser and its libraries into TMPDIR. */

const packed = fileURLToPath(new URL('../bin', import.meta.resolve('@sparticuz/chromium')))
await chromium.executablePath(packed)
// The package itself does this only on the machines of one provider; here they are needed as much.
await inflate(join(packed, 'al2023.tar.br'))
