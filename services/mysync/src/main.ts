process.exitCode ??= 0;

export {};
