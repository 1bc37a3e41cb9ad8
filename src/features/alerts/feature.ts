import type { Feature } from '../../contracts/feature.ts'

/** Notifications about what needs attention. */
export const alerts: Feature = {
  name: 'alerts',
  commands: [
    {
      name: 'alerts',
      summary: 'List open alerts, and test the channels.',
      group: 'Maintenance:',
      before: 'config',
      commands: [
        {
          name: 'list',
          summary: 'List open alerts: since when, why, and the command that helps.',
          load: () => import('./cli/list.ts'),
        },
        {
          name: 'test',
          summary: 'Send a test message through each channel of the config.',
          load: () => import('./cli/test.ts'),
        },
      ],
    },
  ],
  config: async () => (await import('./section.ts')).ALERTS_SECTION,
  routes: async () => (await import('./routes.ts')).ALERT_ROUTES,
  services: async (host) => {
    const { sendsAlerts } = await import('./section.ts')
    return sendsAlerts(host) ? [(await import('./service.ts')).makeAlertService(host)] : []
  },
  securityChecks: async (settings) => (await import('./section.ts')).checkChannels(settings),
}
