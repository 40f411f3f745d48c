/* fsync and fdatasync that take at least SLOW_FSYNC_MICROSECONDS: for LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static long long now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int slowly(const char *name, int fd)
{
    int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *least = getenv("SLOW_FSYNC_MICROSECONDS");
    long long until = now() + (least ? atoll(least) * 1000 : 0);
    int result = sync(fd);
    long long left = until - now();
    if (left > 0) {
        struct timespec pause = {left / 1000000000, left % 1000000000};
        nanosleep(&pause, NULL);
    }
    return result;
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
