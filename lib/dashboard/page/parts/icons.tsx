const PATHS = {
  queues: 'M4 6h16M4 12h16M4 18h10',
  timeline: 'M4 20V13M8.5 20V8M13 20V4M17.5 20v-9M21 20H3',
  jobs: 'M5 4h14v5H5zM5 13h14v7H5zM9 16.5h6',
  dead: 'M4 13h4l2 3h4l2-3h4M4 13v6h16v-6M4 13l3-8h10l3 8',
  lateness: 'M12 7v5l3.5 2M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  processes: 'M4 5h16v6H4zM4 14h16v6H4zM8 8h.01M8 17h.01',
  schedules: 'M5 6h14v14H5zM5 10.5h14M9 3.5v4M15 3.5v4M9 15l2 2 4-4',
  server:
    'M12 8c4.4 0 8-1.1 8-2.5S16.4 3 12 3 4 4.1 4 5.5 7.6 8 12 8zM4 5.5v13C4 19.9 7.6 21 12 21s8-1.1 8-2.5v-13M4 12c0 1.4 3.6 2.5 8 2.5s8-1.1 8-2.5',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 5l11 7-11 7z',
  light:
    'M12 16.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM12 2.5v1.5M12 20v1.5M2.5 12H4M20 12h1.5M5.3 5.3l1 1M17.7 17.7l1 1M18.7 5.3l-1 1M6.3 17.7l-1 1',
  dark: 'M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z',
  system: 'M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18',
  help: 'M9.5 9a2.6 2.6 0 1 1 3.8 2.3c-.9.5-1.3 1-1.3 2.2M12 17h.01M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18z',
  close: 'M6 6l12 12M18 6L6 18',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Brand() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M16 8v8l5 4" />
    </svg>
  );
}
