/*
 * Whether a lane may be in the consumer group. A member that cannot claim must
 * not keep partitions from others that can: after UNFIT_MS without a moment at
 * which all was well it leaves, and it comes back when all is well. One that
 * has to leave again soon stays away for twice as long each time, because every
 * coming and going stops the whole group for a moment.
 *
 * Threads: its lane's. Pure.
 */
#ifndef TOC_EXECUTOR_FITNESS_H
#define TOC_EXECUTOR_FITNESS_H

#include <stdbool.h>
#include <stdint.h>

struct exec_fitness {
    bool looked; /* at least once */
    bool away;
    int64_t well_ns;  /* the last moment at which all was well */
    int64_t since_ns; /* here, or away */
    int64_t away_ms;  /* for so long at least, the last time */
};

/* Call it now and then. Returns whether to be in the group. */
bool exec_fitness_look(struct exec_fitness *fitness, bool well, int64_t now_ns);

#endif
