/*
 * Marks on their way from the core to the lanes: the latest one of each
 * partition.
 *
 * Threads: any. Locks: its own, a leaf.
 */
#ifndef TOC_EXECUTOR_MARKS_H
#define TOC_EXECUTOR_MARKS_H

#include "executor/offsets.h"

#include <pthread.h>

struct exec_mark {
    struct exec_place place;
    int64_t next_offset;
};

struct exec_marks {
    pthread_mutex_t lock;
    struct exec_mark *items; /* one for each partition at most */
    size_t n, cap;
};

void exec_marks_init(struct exec_marks *marks);
void exec_marks_done(struct exec_marks *marks);
void exec_marks_put(struct exec_marks *marks, const struct exec_place *place,
                    int64_t next_offset);
/* Takes one of the lane's out; false: there is none. */
bool exec_marks_take(struct exec_marks *marks, uint16_t lane,
                     struct exec_mark *ret_mark);

#endif
