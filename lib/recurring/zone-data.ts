/** Version of the time-zone data of this process, such as `2026a`; they sort as texts. */
export const ZONE_DATA: string = process.versions['tz'] ?? '';
