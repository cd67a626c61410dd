import { sequences } from './sequences.js';

sequences(5, { limits: true });
