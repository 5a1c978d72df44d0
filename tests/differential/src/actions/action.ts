import type { Flavor } from '../catalogue.ts';
import type { World } from '../world.ts';

/** One thing that a history may do next. It does nothing where it finds nothing to do it with. */
export interface Action {
  readonly name: string;
  readonly weight: number;
  readonly only?: Flavor;
  readonly run: (world: World) => Promise<void>;
}
