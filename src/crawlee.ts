export { crawleeStorage } from './features/crawlee/v3/storage.ts'
export type { CrawleeStorage, CrawleeStorageOptions } from './features/crawlee/v3/storage.ts'
export type { ItemKey } from './features/crawlee/session.ts'
