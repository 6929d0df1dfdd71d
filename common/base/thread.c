#define _GNU_SOURCE /* pthread_setname_np */
#include "common/base/thread.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/base/thread_wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Linux lets a timed wait end up to 50 us late, to wake less often; a task's
 * millisecond is worth a wake-up of its own. */
#define TIMER_SLACK_NS 1UL
#define NAME_MAX_LEN 16 /* the kernel's limit, with the NUL */

struct start {
    toc_thread_fn *fn;
    void *arg;
    char name[NAME_MAX_LEN];
};

static void *
run(void *arg)
{
    struct start start = *(struct start *)arg;

    toc_free(arg);
    (void)pthread_setname_np(pthread_self(), start.name);
    (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
    start.fn(start.arg);
    return NULL;
}

/* All but those that the thread itself raises: blocked, they would kill the
 * process without a sanitizer's or debugger's word on it. */
static void
signals_to_block(sigset_t *set)
{
    static const int own[] = {SIGSEGV, SIGBUS,  SIGFPE,
                              SIGILL,  SIGABRT, SIGTRAP};

    sigfillset(set);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        sigdelset(set, own[i]);
}

void
toc_thread_start(struct toc_thread *thread, const char *name, toc_thread_fn *fn,
                 void *arg)
{
    struct start *start = TOC_NEW(struct start);
    sigset_t blocked, before;
    int rc;

    start->fn = fn;
    start->arg = arg;
    toc_copy(start->name, sizeof start->name, toc_str_of(name));
    signals_to_block(&blocked);
    TOC_ASSERT(pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
    rc = pthread_create(&thread->id, NULL, run, start);
    TOC_ASSERT(rc == 0 && "the system has no thread to give");
    TOC_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    thread->started = true;
}

void
toc_thread_join(struct toc_thread *thread)
{
    if (!thread->started)
        return;
    TOC_ASSERT(pthread_join(thread->id, NULL) == 0);
    thread->started = false;
}

/* ---- names ------------------------------------------------------------- */

/* The name of a thread of this process, without the line's end; 0: gone. */
static size_t
name_of(const char *id, char name[NAME_MAX_LEN])
{
    char path[64];
    ssize_t len;
    int fd;

    toc_format(path, sizeof path, "/proc/self/task/%s/comm", id);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    len = read(fd, name, NAME_MAX_LEN);
    (void)close(fd);
    while (len > 0 && name[len - 1] == '\n')
        len--;
    return len > 0 ? (size_t)len : 0;
}

void
toc_thread_names(struct toc_buf *out, size_t max)
{
    char name[NAME_MAX_LEN], last[NAME_MAX_LEN] = "";
    size_t end = out->len + max, len, last_len = 0;
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/task");

    if (dir == NULL)
        return;
    while (out->len < end && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        len = name_of(entry->d_name, name);
        if (len == 0 || (len == last_len && memcmp(name, last, len) == 0))
            continue;
        toc_buf_text(out, last_len > 0 ? "," : "");
        toc_buf_add(out, name, len);
        memcpy(last, name, len);
        last_len = len;
    }
    (void)closedir(dir);
}

/* ---- waiting ----------------------------------------------------------- */

void
toc_cond_init_mono(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    TOC_ASSERT(pthread_condattr_init(&attr) == 0);
    TOC_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    TOC_ASSERT(pthread_cond_init(cond, &attr) == 0);
    pthread_condattr_destroy(&attr);
}

bool
toc_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock,
                    int64_t until_mono_ns)
{
    struct timespec ts;
    int rc;

    if (until_mono_ns == TOC_BELL_FOREVER) {
        TOC_ASSERT(pthread_cond_wait(cond, lock) == 0);
        return true;
    }
    if (until_mono_ns <= 0)
        return false;
    ts.tv_sec = until_mono_ns / 1000000000;
    ts.tv_nsec = until_mono_ns % 1000000000;
    rc = pthread_cond_timedwait(cond, lock, &ts);
    TOC_ASSERT(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void
toc_bell_init(struct toc_bell *bell)
{
    TOC_ASSERT(pthread_mutex_init(&bell->lock, NULL) == 0);
    toc_cond_init_mono(&bell->cond);
    bell->rung = false;
}

void
toc_bell_done(struct toc_bell *bell)
{
    pthread_cond_destroy(&bell->cond);
    pthread_mutex_destroy(&bell->lock);
}

void
toc_bell_ring(struct toc_bell *bell)
{
    /* Signalled under the lock: the waiter may free the bell once it has
     * seen the ring. */
    pthread_mutex_lock(&bell->lock);
    bell->rung = true;
    pthread_cond_signal(&bell->cond);
    pthread_mutex_unlock(&bell->lock);
}

bool
toc_bell_wait(struct toc_bell *bell, int64_t until_mono_ns)
{
    bool rung;

    pthread_mutex_lock(&bell->lock);
    while (!bell->rung)
        if (!toc_cond_wait_until(&bell->cond, &bell->lock, until_mono_ns))
            break;
    rung = bell->rung;
    bell->rung = false;
    pthread_mutex_unlock(&bell->lock);
    return rung;
}
