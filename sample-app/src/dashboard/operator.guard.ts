import { randomBytes, timingSafeEqual } from 'node:crypto';
import { Injectable, Logger, UnauthorizedException } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { Request, Response } from 'express';

/**
 * Lets in whoever knows the password: a stand-in for the sign-in of an application. Without DASHBOARD_PASSWORD it makes one up and says
 * so in the log.
 */
@Injectable()
export class OperatorGuard implements CanActivate {
  readonly #password = process.env['DASHBOARD_PASSWORD'] || madeUp();

  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    if (isSame(passwordOf(http.getRequest<Request>()), this.#password)) return true;
    http.getResponse<Response>().setHeader('www-authenticate', 'Basic realm="dashboard", charset="UTF-8"');
    throw new UnauthorizedException('The dashboard wants a password.');
  }
}

function passwordOf({ headers }: Request): string {
  const [, encoded = ''] = /^Basic (\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const text = Buffer.from(encoded, 'base64').toString();
  return text.slice(text.indexOf(':') + 1);
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function madeUp(): string {
  const password = randomBytes(9).toString('base64url');
  new Logger('Dashboard').log(`/delay-queue, any user, password ${password}`);
  return password;
}
