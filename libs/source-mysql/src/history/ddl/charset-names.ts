/** Names of charsets and collations as a server spells them. */
export interface CharsetNames {
  /** The server's own spelling (utf8 is utf8mb3 on newer ones); undefined for an unknown one. */
  charset(name: string): string | undefined;
  /** undefined for an unknown collation; null for one that goes with any charset (MariaDB's uca1400 ones). */
  charsetOfCollation(name: string): string | null | undefined;
  /** Most bytes of one character. */
  maxLength(charset: string): number;
}
