/*
 * A task's row and its log merged into one story, oldest first: its creation,
 * each attempt, each command.
 *
 * The latest attempt lives in the row, and stays there when it is superseded
 * and logged; it is told once. Entries are bounded: of a task with thousands
 * (years of redrives) the oldest are left out, and an entry says so.
 *
 * Ownership: the arena's. Threads: any. Pure, but for the names.
 */
#ifndef TOC_ADMIN_TIMELINE_H
#define TOC_ADMIN_TIMELINE_H

#include "common/api/api.h"
#include "common/store/store.h"
#include "toc/v1/admin.pb-c.h"

struct admin_story {
    const struct toc_task *task;
    const struct toc_log_entry *log;
    size_t n;
    size_t bytes_max; /* of the entries, packed */
};

/* Fills timeline->entries. */
void admin_timeline_fill(struct toc_arena *arena,
                         const struct admin_story *story,
                         const struct toc_api_names *names,
                         Toc__V1__Timeline *timeline);

#endif
