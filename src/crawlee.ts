export { crawleeStorage } from './crawlee/v3/storage.ts'
export type { CrawleeStorage, CrawleeStorageOptions } from './crawlee/v3/storage.ts'
export type { ItemKey } from './crawlee/depot.ts'
