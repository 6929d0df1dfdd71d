/*
 * The end that a stop must not miss: calls functions some time after the stop
 * began, and ends the process when it still lives at the last moment. A part of
 * app.c; its functions are described in app.h.
 *
 * Ownership: embedded in the app. Threads: any, but init and done (main); the
 * functions are called by a thread of the deadline's.
 */
#ifndef TOC_APP_DEADLINE_H
#define TOC_APP_DEADLINE_H

#include "common/app/app.h"
#include "common/base/thread.h"

#include <stdatomic.h>

struct toc_app_late {
    int64_t ms;
    toc_app_stop_fn *fn; /* NULL: called, or none */
    void *arg;
};

struct toc_app_deadline {
    struct toc_thread thread;
    struct toc_bell bell;
    const char *_Atomic stage;
    _Atomic int64_t begun_ns; /* 0: not yet */
    _Atomic int64_t last_ms;
    _Atomic bool over;

    pthread_mutex_t lock; /* held while a function runs */
    struct toc_app_late late[TOC_APP_LATE_MAX];
    size_t n_late;
};

void toc_app_deadline_init(struct toc_app_deadline *deadline);
void toc_app_deadline_done(struct toc_app_deadline *deadline);
/* The stop begins now. */
void toc_app_deadline_begin(struct toc_app_deadline *deadline);

#endif
