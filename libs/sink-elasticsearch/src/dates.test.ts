import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isCalendarDate } from './dates.ts';

test('every day of 400 years, and no other, is a day of the calendar', () => {
  for (let year = 1801; year <= 2200; year++) {
    for (let month = 0; month <= 13; month++) {
      for (let day = 0; day <= 32; day++) {
        const text = `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`;
        const date = new Date(`${text}T00:00:00Z`);
        const real = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
        if (isCalendarDate(text) !== real) assert.fail(text);
      }
    }
  }
});

test('zero dates, other text and times', () => {
  for (const text of [
    '0000-00-00',
    '0000-01-01',
    '2024-00-00',
    '2024-02-00',
    '0000-00-00 00:00:00',
    '',
    '2024',
    'x024-01-01',
  ]) {
    assert.equal(isCalendarDate(text), false, text);
  }
  for (const text of ['0001-01-01', '9999-12-31 23:59:59.999999', '2024-02-29 00:00:00']) {
    assert.equal(isCalendarDate(text), true, text);
  }
});
