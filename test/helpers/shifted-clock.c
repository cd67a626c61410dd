/* Moves the wall clock of one process by the signed 64-bit count of microseconds that the file CLOCK_OFFSET holds, read
 * anew each time. For a redis-server of a test: LD_PRELOAD. The monotonic clock stays as it is. With CLOCK_STANDS the clock does not
 * go on by itself: the count is the time since 1970. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int64_t offset(void) {
  static volatile int64_t *shared;
  if (!shared) {
    int file = open(getenv("CLOCK_OFFSET"), O_RDONLY);
    void *map = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) abort();
    shared = map;
  }
  return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real(clock, time);
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return result;
  if (getenv("CLOCK_STANDS")) time->tv_sec = time->tv_nsec = 0;
  int64_t micros = (int64_t)time->tv_sec * 1000000 + time->tv_nsec / 1000 + offset();
  time->tv_sec = micros / 1000000;
  time->tv_nsec = micros % 1000000 * 1000 + time->tv_nsec % 1000;
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
