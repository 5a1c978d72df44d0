/** The plan of the table whose rows are read. */

/** Where it begins: places in it are counted from here. */
export let plan: usize = 0;

export function usePlan(place: usize): void {
  plan = place;
}
