/** Of this package, as package.json says it. */
export const LIBRARY_VERSION = '0.1.0';
