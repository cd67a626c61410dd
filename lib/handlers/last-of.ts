import { lastValueFrom, type Observable } from 'rxjs';

/** Nest would reject for an Observable that ends without a value. */
export function lastOf(result: Observable<unknown>): Promise<unknown> {
  return lastValueFrom(result, { defaultValue: undefined });
}
