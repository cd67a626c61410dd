import { IsDefined, IsInt, Max, Min } from 'class-validator';

export class CreatePaymentDto {
  /** In cents. Its last two digits choose what the simulated gateway does. */
  @IsInt()
  @Min(1)
  @Max(100_000_000)
  amount!: number;

  /** Milliseconds or text such as '2s'. Whether it can be understood is for the queue to say. */
  @IsDefined()
  checkIn!: string | number;
}
