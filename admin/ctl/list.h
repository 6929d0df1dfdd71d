/*
 * Tasks shown one after the other, in whatever format is wanted.
 *
 * Threads: one.
 */
#ifndef TOC_ADMIN_CTL_LIST_H
#define TOC_ADMIN_CTL_LIST_H

#include "admin/ctl/show.h"

struct ctl_tasks {
    struct ctl_table table;
    struct ctl_list list;
    size_t n;
};

void ctl_tasks_begin(struct ctl *ctl, struct ctl_tasks *tasks);
void ctl_tasks_add(struct ctl *ctl, struct ctl_tasks *tasks,
                   const Toc__V1__Task *task);
/* Prints what is in the table; before the arena is reset. */
void ctl_tasks_flush(struct ctl *ctl, struct ctl_tasks *tasks);
void ctl_tasks_end(struct ctl *ctl, struct ctl_tasks *tasks);

#endif
