import { queues } from '../live.js';
import { Empty } from '../parts/basic.js';
import { linkTo, route } from '../route.js';
import { QueuePicker } from '../shell.js';

/** Screens of one queue begin with it. */
export function ChooseQueue() {
  return (
    <>
      <div class="row">
        <QueuePicker />
      </div>
      <div class="card">
        <Empty title="Choose a queue">
          <p class="row middle">
            {queues.value.slice(0, 12).map(({ queue }) => (
              <a key={queue} class="button slim" href={linkTo(route.value.screen, { ...route.value.params, queue })}>
                {queue}
              </a>
            ))}
          </p>
        </Empty>
      </div>
    </>
  );
}
