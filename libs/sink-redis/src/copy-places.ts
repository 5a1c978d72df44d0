/**
 * Where the copies of a cluster's marker lie: one with each master, and one in slot 0 wherever that is.
 *
 * A copy stays in its slot as long as that stays with its master. A slot that has just been moved is no place for one: when its new
 * master dies before its replica has heard of the move, the copy is gone, and an older one, which would tell how much was lost, must
 * be left there.
 */
import type { SlotMap } from './slot-map.ts';

export interface CopyPlace {
  readonly slot: number;
  /** Begin of the id of the master that it was put to. */
  readonly master: string;
}

const ID_LENGTH = 12;

/** Where the copies should be, given where they are. */
export function placesOf(present: readonly CopyPlace[], map: SlotMap): readonly CopyPlace[] {
  const places = map.masters.map((owner): CopyPlace => {
    const master = owner.id.slice(0, ID_LENGTH);
    const here = present.filter(({ slot }) => map.owner(slot) === owner);
    const kept = here.find((place) => place.master === master) ?? here[0];
    return { slot: kept?.slot ?? owner.lowestSlot, master };
  });
  if (!places.some(({ slot }) => slot === 0))
    places.push(present.find(({ slot }) => slot === 0) ?? { slot: 0, master: '' });
  return places.sort((a, b) => a.slot - b.slot);
}

export function slotsOf(places: readonly CopyPlace[]): readonly number[] {
  return places.map(({ slot }) => slot);
}

export function placesText(places: readonly CopyPlace[]): string {
  return places.map(({ slot, master }) => `${slot}:${master}`).join();
}

export function parsePlaces(text: string): readonly CopyPlace[] {
  return text.split(',').map((part) => {
    const [slot, master = ''] = part.split(':');
    return { slot: Number(slot), master };
  });
}
