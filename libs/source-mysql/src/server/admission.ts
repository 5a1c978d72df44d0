/** Whether a server has let this source in so far: a denial after that may pass (docs/adr/0211). */
export class Admission {
  #isGiven = false;

  get isGiven(): boolean {
    return this.#isGiven;
  }

  given(): void {
    this.#isGiven = true;
  }
}
