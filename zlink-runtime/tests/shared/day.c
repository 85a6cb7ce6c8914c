// The clock of the day of a process that a test starts: what a file says, in microseconds since 1970, where whoever starts it
// has put this before libc. All other clocks are the machine's.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int day = -1;

__attribute__((constructor)) static void begin(void)
{
	day = open(getenv("ZLINK_TEST_DAY"), O_RDONLY | O_CLOEXEC);
}

static int64_t micros(void)
{
	int64_t now;
	if (pread(day, &now, sizeof now, 0) != sizeof now)
		abort();
	return now;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, clock, time);
	int64_t now = micros();
	*time = (struct timespec){.tv_sec = now / 1000000, .tv_nsec = now % 1000000 * 1000};
	return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
	int64_t now = micros();
	(void)zone;
	*time = (struct timeval){.tv_sec = now / 1000000, .tv_usec = now % 1000000};
	return 0;
}

time_t time(time_t *place)
{
	time_t now = micros() / 1000000;
	if (place)
		*place = now;
	return now;
}
