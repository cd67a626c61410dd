import { render } from 'preact';
import { App } from './app.js';
import { followKeys } from './keyboard.js';
import { followState } from './live.js';
import { followAddress } from './route.js';
import { followSettings } from './settings.js';
import 'uplot/dist/uPlot.min.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/parts.css';
import './styles/tables.css';
import './styles/screens.css';

followSettings();
followAddress();
followState();
followKeys();

const page = document.getElementById('page')!;
page.textContent = '';
render(<App />, page);
