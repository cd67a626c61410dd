import { sequences } from './sequences.js';

sequences(4);
