/** What has module state of its own, and is entered before any of its code runs. */
export interface Inhabitant {
  /** Takes its module state out of the modules, and puts it back. */
  suspend(): void;
  resume(): void;
}

let present: Inhabitant | undefined;
let loaded: Inhabitant | undefined;

/** From now on its code runs, and that of nobody else. */
export function enter(inhabitant: Inhabitant): void {
  present = inhabitant;
  if (loaded === inhabitant) return;
  loaded?.suspend();
  loaded = inhabitant;
  inhabitant.resume();
}

/** From now on no process runs: whatever asks for its clock or its chance is in the wrong place. */
export function leave(): void {
  present = undefined;
}

export function whoIsPresent(): Inhabitant | undefined {
  return present;
}
