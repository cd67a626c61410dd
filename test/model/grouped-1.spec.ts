import { sequences } from './sequences.js';

sequences(6, { grouped: 400 });
